//! Inodes stored by a commit.

use super::Transaction;
use crate::bytes::{be32, be64};
use crate::error::Error;
use crate::format::{BufferKind, INODE_LSN_OFFSET, InodeCore, InodeFlags2, NEXT_UNLINKED_OFFSET};
use crate::geometry::Geometry;
use crate::inode::{InodeState, LiteralArea, place};
use crate::units::{AgInode, Lsn};
use crate::volume::Volume;

impl InodeState {
    /// Writes the inode into its cluster buffer, as part of the transaction. Times that its encoding
    /// cannot hold are moved to the nearest that it can.
    pub(crate) fn store(&mut self, trans: &mut Transaction<'_>) -> Result<(), Error> {
        if !self.take_changed() {
            return Ok(());
        }
        let geometry = trans.geometry();
        self.core.flags2.set(InodeFlags2::BIGTIME, geometry.features.bigtime());
        let encoding = self.core.timestamp_encoding();
        let InodeCore { atime, mtime, ctime, crtime, .. } = &mut self.core;
        for time in [atime, mtime, ctime, crtime] {
            *time = time.clamped(encoding);
        }
        self.core.data_format = self.data.format();
        self.core.data_extents = self.data.extent_count() as u64;
        if let Some(attr) = &self.attr {
            self.core.attr_format = attr.format();
            // The format limits attribute extents to 32 bits; memory does so long before.
            self.core.attr_extents = u32::try_from(attr.extent_count()).unwrap_or(u32::MAX);
        }
        let (address, offset) = place(trans.geometry(), self.number);
        let buffer = trans.read(&address, BufferKind::InodeCluster)?;
        let mut guard = trans.edit(&buffer);
        // Guarded by the lock of the group: other inodes' changes may have moved it.
        self.core.next_unlinked = AgInode(be32(&guard, offset + NEXT_UNLINKED_OFFSET));
        // The journal stamps the cluster when it logs the inode.
        self.core.lsn = Lsn(be64(&guard, offset + INODE_LSN_OFFSET));
        let stored_size = self.stored_size();
        let mut edit = guard.edit();
        let bytes = edit.region(offset..offset + geometry.inode_size());
        let size = std::mem::replace(&mut self.core.size, stored_size);
        let encoded = self.core.encode(bytes, geometry);
        self.core.size = size;
        encoded.map_err(|error| Error::Inode { inode: self.number, what: error.to_string() })?;
        self.store_forks(geometry, bytes);
        self.memory.accessed = false;
        Ok(())
    }

    /// Writes the forks behind the core. A free inode keeps what is there, as a kernel leaves it.
    fn store_forks(&mut self, geometry: &Geometry, bytes: &mut [u8]) {
        if self.core.mode == 0 {
            if let Some(literal) = self.memory.literal.take() {
                bytes[geometry.inode_core_size()..].copy_from_slice(literal.bytes());
            }
            return;
        }
        self.data.encode(&mut bytes[self.core.data_fork(geometry)]);
        if let Some(attr) = &self.attr {
            attr.encode(&mut bytes[self.core.attr_fork(geometry)]);
        }
    }

    /// Keeps the area of the forks, as it is stored, for the time when the inode is free. The changes
    /// until then are those of its removal; the later of two calls counts for the data fork.
    ///
    /// # Errors
    /// The cluster is damaged; the device failed.
    pub(crate) fn keep_literal_area(&mut self, volume: &Volume) -> Result<(), Error> {
        let geometry = volume.geometry();
        let (address, offset) = place(geometry, self.number);
        let buffer = volume.cache().read(&address, BufferKind::InodeCluster)?;
        let cluster = buffer.read();
        let bytes = &cluster[offset + geometry.inode_core_size()..offset + geometry.inode_size()];
        match &mut self.memory.literal {
            Some(kept) => kept.renew_data(bytes, self.core.size),
            None => {
                let attributes = match self.core.forkoff {
                    0 => bytes.len(),
                    units => usize::from(units) * 8,
                };
                let attributes = attributes.min(bytes.len());
                self.memory.literal = Some(LiteralArea::new(bytes, attributes, self.core.size));
            }
        }
        Ok(())
    }
}

//! Inodes stored by a commit.

use super::Transaction;
use crate::bytes::{be32, be64};
use crate::error::Error;
use crate::format::{BufferKind, INODE_LSN_OFFSET, InodeCore, InodeFlags2, NEXT_UNLINKED_OFFSET};
use crate::inode::{InodeState, place};
use crate::units::{AgInode, Lsn};

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
        self.data.encode(&mut bytes[self.core.data_fork(geometry)]);
        if let Some(attr) = &self.attr {
            attr.encode(&mut bytes[self.core.attr_fork(geometry)]);
        }
        self.memory.accessed = false;
        Ok(())
    }
}

//! Inodes in memory: core and forks, decoded, verified, locked.
//!
//! An inode's lock guards its core and everything its forks own (design, decision 2). Operations
//! lock inodes in ascending order before any allocation group.

mod allocate;
mod chunk;
mod fork;
mod free;
mod memory;
mod table;
pub mod unlinked;

pub use allocate::{allocate, find};
pub use chunk::allocate_chunk;
pub(crate) use chunk::next_generation;
pub use fork::{Fork, ForkContent, ForkKind};
pub use free::free;
pub(crate) use memory::{
    BlocksFrozen, Budget, DataLock, DirtyData, FileLocks, FileMemory, Run, file_locks,
};
pub use table::InodeTable;

use crate::ag;
use crate::bytes::{be32, be64};
use crate::cache::BufferAddress;
use crate::dir::SpaceHint;
use crate::error::Error;
use crate::format::{
    BufferKind, FileType, INODE_LSN_OFFSET, InodeCore, InodeFlags2, NEXT_UNLINKED_OFFSET,
    Timestamp, inode_crc_matches,
};
use crate::geometry::Geometry;
use crate::rank;
use crate::trans::Transaction;
use crate::units::{AgBlock, AgInode, InodeNumber, Lsn};
use crate::volume::Volume;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use undercroft_locks::{ArcRwLockWriteGuard, OrderedRwLock};

/// How often the lock of a group is tried to learn whether a damaged inode is in use.
const GROUP_ATTEMPTS: u32 = 50;

/// An inode in memory, behind its lock.
pub type Inode = OrderedRwLock<InodeState, { rank::INODE }>;

/// The error of a number whose inode is not in use. That of the root directory is in the superblock:
/// nobody makes it up, and nobody removes it.
fn not_in_use(volume: &Volume, inode: InodeNumber) -> Error {
    let error = Error::Stale { inode };
    if inode == volume.geometry().root_inode { error.into_damage() } else { error }
}

/// Tells an inode that is gone from one that is damaged: its blocks go with the last inode in them,
/// and then hold anything.
fn gone_or(error: Error, volume: &Volume, number: InodeNumber) -> Error {
    if !error.is_damage() || !volume.geometry().valid_inode(number) {
        return error;
    }
    // Bounded: whoever asks may hold the group. Others give it up soon.
    for _ in 0..GROUP_ATTEMPTS {
        match ag::is_inode_in_use(volume, number, false) {
            Ok(Some(false)) => return not_in_use(volume, number),
            Ok(Some(true)) | Err(_) => break,
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    error
}

/// Core and forks of an inode.
#[derive(Debug)]
pub struct InodeState {
    /// Its number.
    pub number: InodeNumber,
    /// Its core. Extent counts and fork formats are those of the forks, and are set from them when
    /// the inode is stored.
    pub core: InodeCore,
    /// Content: data, entries, target or device.
    pub data: Fork,
    /// Extended attributes; `None` if there is no such fork.
    pub attr: Option<Fork>,
    /// Directories: where names were added last.
    pub(crate) space: SpaceHint,
    /// What is in memory of it as a file.
    pub(crate) memory: FileMemory,
    /// Newer than its cluster buffer.
    changed: bool,
}

impl InodeState {
    /// Reads and verifies an inode.
    ///
    /// # Errors
    /// No inode of this number can exist, it is free or damaged, or the device failed.
    pub(crate) fn load(volume: &Volume, number: InodeNumber) -> Result<Self, Error> {
        let state = Self::load_any(volume, number);
        let state = state.map_err(|error| gone_or(error, volume, number))?;
        if state.core.mode == 0 {
            return Err(not_in_use(volume, number));
        }
        Ok(state)
    }

    /// Reads and verifies an inode, which may be free.
    ///
    /// # Errors
    /// No inode of this number can exist, it is damaged, or the device failed.
    pub(crate) fn load_any(volume: &Volume, number: InodeNumber) -> Result<Self, Error> {
        let geometry = volume.geometry();
        let damaged = |what: String| Error::Inode { inode: number, what };
        if !geometry.valid_inode(number) {
            return Err(not_in_use(volume, number));
        }
        let (address, offset) = place(volume, number);
        let buffer = volume.cache().read(&address, BufferKind::InodeCluster)?;
        let cluster = buffer.read();
        let bytes = &cluster[offset..offset + geometry.inode_size()];
        if geometry.features.crc && !inode_crc_matches(bytes) && !buffer_is_newer(&cluster) {
            return Err(damaged("checksum does not match".into()));
        }
        let core = InodeCore::decode(bytes, geometry).map_err(damaged)?;
        core.verify(number, geometry).map_err(damaged)?;
        let data = Fork::decode(&core, ForkKind::Data, bytes, geometry).map_err(damaged)?;
        let attr = match core.forkoff {
            0 => None,
            _ => Some(Fork::decode(&core, ForkKind::Attr, bytes, geometry).map_err(damaged)?),
        };
        let space = SpaceHint::default();
        let memory = FileMemory::default();
        Ok(Self { number, core, data, attr, space, memory, changed: false })
    }

    /// A new inode that is not stored yet.
    pub(crate) fn new(core: InodeCore, data: Fork, attr: Option<Fork>) -> Self {
        let space = SpaceHint::default();
        let number = core.number;
        let memory = FileMemory::default();
        Self { number, core, data, attr, space, memory, changed: true }
    }

    /// Refuses an inode that was freed while the caller held it.
    pub(crate) fn expect_in_use(&self) -> Result<(), Error> {
        if self.core.mode == 0 {
            return Err(Error::Stale { inode: self.number });
        }
        Ok(())
    }

    /// Type of the file. An inode in memory is in use, so it has one.
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.core.file_type().unwrap_or(FileType::Regular)
    }

    /// Says that core or forks were changed: the next commit stores them.
    pub fn touch(&mut self) {
        self.changed = true;
    }

    /// Says that the inode was changed at `now`.
    pub fn set_changed(&mut self, now: Timestamp) {
        self.core.ctime = now;
        self.core.changecount += 1;
        self.changed = true;
    }

    /// Says that what the inode holds was changed at `now`.
    pub fn set_modified(&mut self, now: Timestamp) {
        self.core.mtime = now;
        self.set_changed(now);
    }

    /// Takes back [`touch`](Self::touch): the inode is gone together with its chunk, so there is
    /// nothing to store it in.
    pub(crate) fn discard(&mut self) {
        self.changed = false;
    }

    /// One of the two forks; `None` for an attribute fork that does not exist.
    #[must_use]
    pub fn fork(&self, kind: ForkKind) -> Option<&Fork> {
        match kind {
            ForkKind::Data => Some(&self.data),
            ForkKind::Attr => self.attr.as_ref(),
        }
    }

    /// One of the two forks, for change; an attribute fork is made if there is none.
    pub(crate) fn fork_mut(&mut self, kind: ForkKind) -> &mut Fork {
        self.changed = true;
        match kind {
            ForkKind::Data => &mut self.data,
            ForkKind::Attr => self.attr.get_or_insert_with(Fork::empty),
        }
    }

    /// Bytes that a fork has inside the inode.
    #[must_use]
    pub fn inline_size(&self, geometry: &Geometry, kind: ForkKind) -> usize {
        match kind {
            ForkKind::Data => self.core.data_fork(geometry).len(),
            ForkKind::Attr => self.core.attr_fork(geometry).len(),
        }
    }

    /// Writes the inode into its cluster buffer, as part of the transaction. Times that its encoding
    /// cannot hold are moved to the nearest that it can.
    pub(crate) fn store(&mut self, trans: &mut Transaction<'_>) -> Result<(), Error> {
        if !std::mem::take(&mut self.changed) {
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
        let (address, offset) = place(trans.volume(), self.number);
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

/// Whether a cluster was changed since it was read: checksums of its inodes are then old.
fn buffer_is_newer(cluster: &crate::cache::ReadGuard<'_>) -> bool {
    cluster.is_changed()
}

/// The buffer that holds an inode, and the inode's offset in it.
///
/// Buffers are whole clusters where chunks are aligned to them, else single blocks.
#[must_use]
pub fn place(volume: &Volume, number: InodeNumber) -> (BufferAddress, usize) {
    let geometry = volume.geometry();
    let (ag, agino) = geometry.split_inode(number);
    let (block, index) = geometry.inode_block(agino);
    let unit = cluster_unit(geometry);
    let first = AgBlock(block.0 / unit * unit);
    let offset = ((block.0 - first.0) as usize) << geometry.block_log;
    (volume.address(ag, first, unit), offset + ((index as usize) << geometry.inode_log))
}

/// Blocks of one inode buffer.
#[must_use]
pub fn cluster_unit(geometry: &Geometry) -> u32 {
    let cluster = geometry.cluster_blocks();
    if geometry.inode_alignment >= cluster && geometry.inode_alignment.is_multiple_of(cluster) {
        cluster
    } else {
        1
    }
}

/// An inode locked for change. Give it to [`Transaction::commit`] when it was changed.
#[derive(Debug)]
pub struct InodeGuard {
    guard: ArcRwLockWriteGuard<InodeState, { rank::INODE }>,
}

impl InodeGuard {
    /// Waits for the lock of an inode.
    #[must_use]
    pub fn new(inode: &Arc<Inode>) -> Self {
        Self { guard: inode.write_arc() }
    }

    /// Locks an inode that nobody else has, whatever is locked; waits if somebody has it after all.
    pub(crate) fn at_once(inode: &Arc<Inode>) -> Self {
        inode.try_write_arc().map_or_else(|| Self::new(inode), |guard| Self { guard })
    }

    /// Locks an inode that nobody else knows yet, whatever is locked.
    pub(crate) fn of_new(state: InodeState) -> Self {
        let inode = Arc::new(Inode::new(state));
        let guard = inode.try_write_arc().expect("nobody else has it");
        Self { guard }
    }

    /// The inode that is locked.
    pub(crate) fn inode(&self) -> Arc<Inode> {
        Arc::clone(ArcRwLockWriteGuard::rwlock(&self.guard))
    }
}

impl Deref for InodeGuard {
    type Target = InodeState;

    fn deref(&self) -> &InodeState {
        &self.guard
    }
}

impl DerefMut for InodeGuard {
    fn deref_mut(&mut self) -> &mut InodeState {
        &mut self.guard
    }
}

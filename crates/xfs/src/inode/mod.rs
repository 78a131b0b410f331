//! Inodes in memory: core and forks, decoded, verified, locked.
//!
//! An inode's lock guards its core and everything its forks own. Operations lock inodes in ascending
//! order before any allocation group (docs/decisions/locks.md#order-of-locks).

mod dirty_files;
mod extents;
mod fork;
mod memory;
mod recent_blocks;
mod reclaims;
mod table;

pub(crate) use dirty_files::{DirtyFiles, FileKey, Files, SyncScope, Wanted, file_key};
pub use extents::{Added, ExtentList, MAX_EXTENT_LEN, Removed};
pub use fork::{Fork, ForkContent, ForkKind};
pub(crate) use memory::{
    BlocksFrozen, Budget, DataLock, DirtyData, FileLocks, FileMemory, LiteralArea, Run, file_locks,
};
pub(crate) use table::InodeTable;

use crate::cache::BufferAddress;
use crate::dir::SpaceHint;
use crate::error::Error;
use crate::format::{FileType, InodeCore, InodeFlags, Timestamp};
use crate::geometry::Geometry;
use crate::rank;
use crate::units::{AgBlock, InodeNumber};
use recent_blocks::RecentBlocks;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use undercroft_locks::{ArcRwLockWriteGuard, OrderedRwLock};

/// An inode in memory, behind its lock.
pub type Inode = OrderedRwLock<InodeState, { rank::INODE }>;

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
    /// Directories: the blocks that were used last.
    pub(crate) recent: RecentBlocks,
    /// Its state in memory as a file.
    pub(crate) memory: FileMemory,
    /// Newer than its cluster buffer.
    changed: bool,
}

impl InodeState {
    /// A new inode that is not stored yet.
    pub(crate) fn new(core: InodeCore, data: Fork, attr: Option<Fork>) -> Self {
        let space = SpaceHint::default();
        let number = core.number;
        let memory = FileMemory::default();
        let recent = RecentBlocks::default();
        Self { number, core, data, attr, space, recent, memory, changed: true }
    }

    /// An inode as it is stored. Its number need not be: version 2 of the core does not have it.
    pub(crate) fn stored(
        number: InodeNumber,
        core: InodeCore,
        data: Fork,
        attr: Option<Fork>,
    ) -> Self {
        Self { number, changed: false, ..Self::new(core, data, attr) }
    }

    /// Refuses an inode that was freed while the caller held it.
    pub(crate) fn expect_in_use(&self) -> Result<(), Error> {
        if self.core.mode == 0 {
            return Err(Error::Stale { inode: self.number });
        }
        Ok(())
    }

    /// Refuses an inode that is immutable, and, with `append_too`, one that may only grow.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] names the flag.
    pub fn expect_mutable(&self, append_too: bool) -> Result<(), Error> {
        let mut forbidden = InodeFlags::IMMUTABLE;
        forbidden.set(InodeFlags::APPEND, append_too);
        let found = self.core.flags & forbidden;
        if found.is_empty() {
            return Ok(());
        }
        let word = if found.contains(InodeFlags::IMMUTABLE) { "immutable" } else { "append-only" };
        Err(Error::NotPermitted(format!("inode {} is {word}: clear that flag first", self.number)))
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

    /// Records that the content of the inode was changed at `now`.
    pub fn set_modified(&mut self, now: Timestamp) {
        self.core.mtime = now;
        self.set_changed(now);
    }

    /// Whether it is newer than its cluster buffer, which it is not from here on.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
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
}

/// The buffer that holds an inode, and the inode's offset in it.
///
/// Buffers are whole clusters where chunks are aligned to them, else single blocks.
#[must_use]
pub(crate) fn place(geometry: &Geometry, number: InodeNumber) -> (BufferAddress, usize) {
    let (ag, agino) = geometry.split_inode(number);
    let (block, index) = geometry.inode_block(agino);
    let unit = cluster_unit(geometry);
    let first = AgBlock(block.0 / unit * unit);
    let offset = ((block.0 - first.0) as usize) << geometry.block_log;
    (
        BufferAddress::in_group(geometry, ag, first, unit),
        offset + ((index as usize) << geometry.inode_log),
    )
}

/// Blocks of one inode buffer.
#[must_use]
pub(crate) fn cluster_unit(geometry: &Geometry) -> u32 {
    let cluster = geometry.cluster_blocks();
    if geometry.inode_alignment >= cluster && geometry.inode_alignment.is_multiple_of(cluster) {
        cluster
    } else {
        1
    }
}

/// An inode locked for change. Give it to [`Transaction::commit`](crate::Transaction::commit) when
/// it was changed.
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

    /// Locks an inode that no other thread has, whatever is locked; waits if one has it after all.
    pub(crate) fn at_once(inode: &Arc<Inode>) -> Self {
        inode.try_write_arc().map_or_else(|| Self::new(inode), |guard| Self { guard })
    }

    /// Locks an inode that no other thread knows yet, whatever is locked.
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

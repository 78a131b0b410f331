//! The state of a file in memory besides its inode: data that is not on the device, space that it
//! has or that is reserved for it, its locks, and its openings.
//!
//! All of it has one owner, the inode in memory, and nothing else refers to it by number: a number
//! is used again as soon as its inode is freed. It is dropped with the file, and gives back its
//! space.

mod budget;
mod dirty;
mod literal_area;
mod locks;

pub(crate) use budget::Budget;
pub(crate) use dirty::{DirtyData, Run};
pub(crate) use literal_area::LiteralArea;
pub(crate) use locks::{BlocksFrozen, DataLock, FileLocks};

use super::{Inode, InodeState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The state of one file in memory. Guarded by the lock of its inode.
#[derive(Debug, Default)]
pub(crate) struct FileMemory {
    /// Data that is newer than the device. The size of the core is that of the file with it.
    pub(crate) dirty: Option<Box<DirtyData>>,
    /// Space behind the end of the file.
    pub(crate) growth: Growth,
    /// Data that was accepted and is lost: an fsync of the file reports it.
    pub(crate) losses: Losses,
    /// It was made without a name, and may get its first.
    pub(crate) awaits_name: bool,
    /// It has no name and is being freed.
    pub(crate) is_going: bool,
    /// The content of the area of its forks when it will be free, where that is not what is there.
    pub(crate) literal: Option<LiteralArea>,
    /// The time of access is newer than in the cluster.
    pub(crate) accessed: bool,
    /// How often it is open. While it is, it is not freed.
    pub(crate) opens: usize,
    /// Made at first use: most inodes are never read or written as files.
    locks: OnceLock<Arc<FileLocks>>,
}

/// The growth of a file, as far as known while it is in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    /// A writer has it open, and may go on.
    pub(crate) is_open: bool,
    /// It has space behind its end that was taken for writes to come.
    pub(crate) has_space: bool,
    /// It was closed while it was dirty: a program opens it for each write.
    pub(crate) comes_back: bool,
}

/// Lost data of a file. Each opening of it is told once of all losses while it was open, and the
/// next one of losses that none was told of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    /// How often data was lost.
    count: u64,
    /// Why, the last time.
    what: Option<Arc<str>>,
    /// The count up to which an opening was told.
    told: u64,
}

impl Losses {
    /// Data was lost.
    pub(crate) fn add(&mut self, what: &Arc<str>) {
        self.count += 1;
        self.what = Some(Arc::clone(what));
    }

    /// Whether there are losses that an opening does not know of.
    pub(crate) fn are_untold(&self, known: &AtomicU64) -> bool {
        known.load(Ordering::Relaxed) != self.count
    }

    /// The count of losses that a new opening need not be told.
    pub(crate) fn known(&self) -> u64 {
        self.told
    }

    /// What an opening is to be told that knows of `known` losses, which it does then.
    pub(crate) fn tell(&mut self, known: &AtomicU64) -> Option<Arc<str>> {
        if known.swap(self.count, Ordering::Relaxed) == self.count {
            return None;
        }
        self.told = self.count;
        self.what.clone()
    }
}

impl FileMemory {
    /// Drops what belongs to the content: the file is being freed. Its openings keep its locks.
    pub(crate) fn discard(&mut self) {
        self.dirty = None;
        self.growth = Growth::default();
        self.accessed = false;
    }
}

/// The locks of a file. Not by way of a guard of the inode that might live on while they are waited
/// for.
pub(crate) fn file_locks(inode: &Inode) -> Arc<FileLocks> {
    Arc::clone(inode.read().locks())
}

impl InodeState {
    /// The locks of the file.
    pub(crate) fn locks(&self) -> &Arc<FileLocks> {
        self.memory.locks.get_or_init(|| Arc::new(FileLocks::new(self.number)))
    }

    /// The data up to the byte `end` is on its way: the stored size can grow as far.
    pub(crate) fn grow_stored_size(&mut self, end: u64) {
        let size = self.core.size;
        if let Some(dirty) = &mut self.memory.dirty {
            dirty.stored_size = dirty.stored_size.max(end.min(size));
        }
    }

    /// Whether it is no file any more: it is free, or it has no name and is not open.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.core.mode == 0
            || (self.core.nlink == 0 && (self.memory.opens == 0 || self.memory.is_going))
    }

    /// Blocks that are set aside for dirty data.
    #[must_use]
    pub fn reserved_ahead(&self) -> u64 {
        self.memory.dirty.as_ref().map_or(0, |dirty| dirty.reserved.blocks())
    }

    /// Takes up to `blocks` of the blocks set aside; returns how many.
    pub(crate) fn take_reserved(&mut self, blocks: u64) -> u64 {
        self.memory.dirty.as_mut().map_or(0, |dirty| dirty.reserved.take(blocks))
    }

    /// The size that is stored: data that is not on the device is not part of it.
    pub(crate) fn stored_size(&self) -> u64 {
        let dirty = self.memory.dirty.as_ref();
        dirty.map_or(self.core.size, |dirty| dirty.stored_size.min(self.core.size))
    }
}

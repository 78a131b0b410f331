//! The locks of the data of a file. They come before transactions and locks of inodes.

use crate::rank;
use crate::units::InodeNumber;
use std::sync::Arc;
use undercroft_locks::{
    ArcMutexGuard, ArcRwLockWriteGuard, OrderedMutex, OrderedRwLock, RwLockReadGuard, with_key,
};

/// The locks of one file, in the order in which they are taken.
#[derive(Debug)]
pub(crate) struct FileLocks {
    number: InodeNumber,
    /// Held by a thread that changes data, size or mapping, over all the steps of a change.
    data: Arc<OrderedMutex<(), { rank::DATA }>>,
    /// Held shared while blocks of the file are read without the lock of the inode, and alone by
    /// steps that take blocks away from the file: a block that is being read is not freed, so no
    /// reader gets data that another file has there since.
    blocks: Arc<OrderedRwLock<(), { rank::BLOCKS }>>,
}

/// The right to change the data of one file. Several are taken in the order of their inodes.
pub(crate) type DataLock = ArcMutexGuard<(), { rank::DATA }>;

/// Blocks of the file stay its own while this is held.
pub(crate) type BlocksInUse<'l> = RwLockReadGuard<'l, (), { rank::BLOCKS }>;

/// No thread reads blocks of the file while this is held.
pub(crate) type BlocksFrozen = ArcRwLockWriteGuard<(), { rank::BLOCKS }>;

impl FileLocks {
    pub(super) fn new(number: InodeNumber) -> Self {
        Self { number, data: Arc::default(), blocks: Arc::default() }
    }

    /// Waits for the right to change the data.
    pub(crate) fn lock_data(&self) -> DataLock {
        with_key(self.number.0, || self.data.try_lock_arc()).unwrap_or_else(|| {
            // The holder may wait for bios that this thread holds back.
            undercroft_block::flush_plugs();
            with_key(self.number.0, || self.data.lock_arc())
        })
    }

    /// Keeps the blocks of the file from being freed. Bios that this thread holds back are sent
    /// first: a thread that waits to free blocks may wait for them.
    pub(crate) fn use_blocks(&self) -> BlocksInUse<'_> {
        with_key(self.number.0, || self.blocks.try_read()).unwrap_or_else(|| {
            undercroft_block::flush_plugs();
            with_key(self.number.0, || self.blocks.read())
        })
    }

    /// Waits until no thread reads blocks of the file.
    pub(crate) fn freeze_blocks(&self) -> BlocksFrozen {
        with_key(self.number.0, || self.blocks.try_write_arc()).unwrap_or_else(|| {
            undercroft_block::flush_plugs();
            with_key(self.number.0, || self.blocks.write_arc())
        })
    }

    /// Both locks, if no thread changes or reads the file now: for callers that hold locks of a
    /// higher rank.
    pub(crate) fn try_all(&self) -> Option<(DataLock, BlocksFrozen)> {
        self.data.try_lock_arc().zip(self.blocks.try_write_arc())
    }
}

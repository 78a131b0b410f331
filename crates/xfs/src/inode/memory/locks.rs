//! The locks of the data of a file. They come before transactions and locks of inodes.

use parking_lot::{
    ArcMutexGuard, ArcRwLockWriteGuard, Mutex, RawMutex, RawRwLock, RwLock, RwLockReadGuard,
};
use std::sync::Arc;

/// The locks of one file, in the order in which they are taken.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    /// Held by whoever changes data, size or mapping, over all the steps of a change.
    data: Arc<Mutex<()>>,
    /// Held shared while blocks of the file are read without the lock of the inode, and alone by
    /// steps that take blocks away from the file: a block that somebody is reading is not freed, so
    /// nobody reads what another file has there since.
    blocks: Arc<RwLock<()>>,
}

/// The right to change the data of one file. Several are taken in the order of their inodes.
pub(crate) type DataLock = ArcMutexGuard<RawMutex, ()>;

/// Blocks of the file stay its own while this is held.
pub(crate) type BlocksInUse<'l> = RwLockReadGuard<'l, ()>;

/// Nobody reads blocks of the file while this is held.
pub(crate) type BlocksFrozen = ArcRwLockWriteGuard<RawRwLock, ()>;

impl FileLocks {
    /// Waits for the right to change the data.
    pub(crate) fn lock_data(&self) -> DataLock {
        self.data.try_lock_arc().unwrap_or_else(|| {
            // Whoever has it may wait for bios that this thread holds back.
            undercroft_block::flush_plugs();
            self.data.lock_arc()
        })
    }

    /// Keeps the blocks of the file from being freed. Bios that this thread holds back are sent
    /// first: whoever waits to free blocks may wait for them.
    pub(crate) fn use_blocks(&self) -> BlocksInUse<'_> {
        self.blocks.try_read().unwrap_or_else(|| {
            undercroft_block::flush_plugs();
            self.blocks.read()
        })
    }

    /// Waits until nobody reads blocks of the file.
    pub(crate) fn freeze_blocks(&self) -> BlocksFrozen {
        self.blocks.try_write_arc().unwrap_or_else(|| {
            undercroft_block::flush_plugs();
            self.blocks.write_arc()
        })
    }

    /// Both rights, if nobody changes or reads the file now: for whoever has locks that come behind
    /// these.
    pub(crate) fn try_all(&self) -> Option<(DataLock, BlocksFrozen)> {
        self.data.try_lock_arc().zip(self.blocks.try_write_arc())
    }
}

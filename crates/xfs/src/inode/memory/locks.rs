//! The locks of the data of a file. They come before transactions and locks of inodes.

use crate::rank;
use crate::units::InodeNumber;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use undercroft_locks::{
    ArcMutexGuard, ArcRwLockWriteGuard, OrderedMutex, OrderedRwLock, RwLockReadGuard, with_key,
};

/// The locks of one file, in the order in which they are taken.
#[derive(Debug)]
pub(crate) struct FileLocks {
    number: InodeNumber,
    /// Held by a thread that changes data, size or mapping, over all the steps of a change.
    data: Arc<OrderedMutex<Version, { rank::DATA }>>,
    /// The one of `data`, for threads that do not lock it.
    version: Arc<AtomicU64>,
    /// Held shared while blocks of the file are read without the lock of the inode, and alone by
    /// steps that take blocks away from the file: a block that is being read is not freed, so no
    /// reader gets data that another file has there since.
    blocks: Arc<OrderedRwLock<(), { rank::BLOCKS }>>,
}

/// Number of the version of a file's data. Odd while it is locked; each lock makes a new one.
#[derive(Debug, Default)]
struct Version(Arc<AtomicU64>);

/// The right to change the data of one file. Several are taken in the order of their inodes.
pub(crate) struct DataLock(ArcMutexGuard<Version, { rank::DATA }>);

impl DataLock {
    fn new(guard: ArcMutexGuard<Version, { rank::DATA }>) -> Self {
        let lock = Self(guard);
        lock.change();
        lock
    }

    /// Makes the number odd, or even again. The lock is held: no other thread changes it.
    fn change(&self) {
        let version = &self.0.0;
        version.store(version.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

impl Drop for DataLock {
    fn drop(&mut self) {
        self.change();
    }
}

/// Blocks of the file stay its own while this is held.
pub(crate) type BlocksInUse<'l> = RwLockReadGuard<'l, (), { rank::BLOCKS }>;

/// No thread reads blocks of the file while this is held.
pub(crate) type BlocksFrozen = ArcRwLockWriteGuard<(), { rank::BLOCKS }>;

impl FileLocks {
    pub(super) fn new(number: InodeNumber) -> Self {
        let version = Arc::default();
        let data = Arc::new(OrderedMutex::new(Version(Arc::clone(&version))));
        Self { number, data, version, blocks: Arc::default() }
    }

    /// Waits for the right to change the data.
    pub(crate) fn lock_data(&self) -> DataLock {
        let guard = with_key(self.number.0, || self.data.try_lock_arc()).unwrap_or_else(|| {
            // The holder may wait for bios that this thread holds back.
            undercroft_block::flush_plugs();
            with_key(self.number.0, || self.data.lock_arc())
        });
        DataLock::new(guard)
    }

    /// Number of the version of the data on the device and of its mapping; `None` while a thread
    /// may change them. When it is the same at two times, reads that were submitted between them
    /// found the data of both.
    pub(crate) fn stable_version(&self) -> Option<u64> {
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
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
        let data = self.data.try_lock_arc().map(DataLock::new);
        data.zip(self.blocks.try_write_arc())
    }
}

//! How much memory has what is read ahead.
//!
//! | what | most bytes | when there is no more |
//! |---|---|---|
//! | blocks of metadata | [`BLOCK_BYTES`] | the oldest goes |
//! | regions of metadata | [`REGION_BYTES`] | the oldest goes |
//! | data of files | [`FILE_BYTES`] | idle readers give theirs; then nothing is read ahead |

use super::pieces::Pieces;
use parking_lot::Mutex;
use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};
use undercroft_block::{Buffer, BufferPool};

/// Most bytes of blocks of metadata that are on their way or wait for a reader.
pub(super) const BLOCK_BYTES: usize = 16 << 20;

/// Most bytes of regions in memory: a walk that has directories read ahead of it comes to all that they
/// brought.
pub(super) const REGION_BYTES: usize = 16 << 20;

/// Bytes of file data that may be ahead of all readers of a volume: what a device that answers after
/// 20 ms brings in that time at 2 GB a second. An `extract` begins reads of 16 to 20 MiB, which take
/// up to twice that in powers of two: with 32 MiB the last reads of some batches found no memory.
const FILE_BYTES: usize = 40 << 20;

/// File data that was read ahead of its readers on a volume, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadAheadBytes {
    /// Read from the device before a reader asked for it.
    pub begun: u64,
    /// Given to readers.
    pub used: u64,
}

/// Memory for data of files, and who has some.
#[derive(Debug)]
pub(crate) struct FileMemory {
    pool: BufferPool,
    holders: Mutex<Vec<Weak<Pieces>>>,
    begun: AtomicU64,
    used: AtomicU64,
}

impl Default for FileMemory {
    fn default() -> Self {
        Self {
            pool: BufferPool::new(FILE_BYTES),
            holders: Mutex::default(),
            begun: AtomicU64::new(0),
            used: AtomicU64::new(0),
        }
    }
}

impl FileMemory {
    /// Adds an owner of memory, until it is dropped.
    pub(crate) fn enlist(&self, holder: Weak<Pieces>) {
        let mut holders = self.holders.lock();
        if holders.len() == holders.capacity() {
            // As often as the list doubles.
            holders.retain(|holder| holder.strong_count() > 0);
        }
        holders.push(holder);
    }

    /// A buffer of this length with unspecified contents, if there is memory for it: what owners
    /// do not use any more is taken from them.
    pub(crate) fn try_get(&self, length: usize) -> Option<Buffer> {
        self.pool.try_get(length).or_else(|| {
            self.release_idle();
            self.pool.try_get(length)
        })
    }

    fn release_idle(&self) {
        // One thread at a time looks through them; for the others there is no memory now.
        let Some(mut holders) = self.holders.try_lock() else { return };
        holders.retain(|holder| holder.strong_count() > 0);
        for holder in holders.iter().filter_map(Weak::upgrade) {
            holder.release_if_idle();
        }
    }

    pub(crate) fn count_begun(&self, bytes: usize) {
        self.begun.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_used(&self, bytes: usize) {
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> ReadAheadBytes {
        ReadAheadBytes {
            begun: self.begun.load(Ordering::Relaxed),
            used: self.used.load(Ordering::Relaxed),
        }
    }
}

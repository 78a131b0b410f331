//! A part of a file that is read ahead, and the memory that it is read into.

use parking_lot::Mutex;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use undercroft_block::{Buffer, Waiter};

/// A part of a file, on its way or here.
#[derive(Debug)]
pub(super) struct Piece {
    /// Bytes of the file.
    pub(super) range: Range<u64>,
    /// Bytes of the memory before them.
    pub(super) skipped: usize,
    /// [Version](crate::inode::FileLocks::stable_version) of the file's data.
    pub(super) version: u64,
    /// Pieces of several files may lie in it.
    pub(super) memory: Arc<Arrival>,
}

/// Memory that a read fills.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The read; the first that asks for the bytes waits for it.
    waiter: Mutex<Option<Waiter>>,
    /// `None` if the read failed.
    bytes: OnceLock<Option<Buffer>>,
}

/// Bytes that were read ahead, where they lie. They stay as they are when the file changes.
#[derive(Debug)]
pub(in crate::file) struct Loan {
    memory: Arc<Arrival>,
    /// Of the memory.
    range: Range<usize>,
    /// They had to be waited for.
    pub(super) was_late: bool,
}

impl Arrival {
    pub(super) fn new(waiter: Waiter) -> Arc<Self> {
        Arc::new(Self { waiter: Mutex::new(Some(waiter)), bytes: OnceLock::new() })
    }

    /// Whether the bytes have to be waited for.
    fn is_on_its_way(&self) -> bool {
        self.bytes.get().is_none()
            && self.waiter.lock().as_ref().is_none_or(|waiter| !waiter.is_complete())
    }

    /// The bytes, once they have arrived; `None` if their read failed.
    fn wait(&self) -> Option<&Buffer> {
        let arrived = || {
            let waiter = self.waiter.lock().take()?;
            waiter.wait().into_buffer().ok()
        };
        self.bytes.get_or_init(arrived).as_ref()
    }
}

impl Piece {
    /// The bytes from the byte `at` of the file on, as far as the piece has them, at most `len`.
    /// `None` if its read failed.
    pub(super) fn lend(&self, at: u64, len: usize) -> Option<Loan> {
        let was_late = self.memory.is_on_its_way();
        self.memory.wait()?;
        // Both less than a piece.
        let start = self.skipped + (at - self.range.start) as usize;
        let len = len.min((self.range.end - at) as usize);
        Some(Loan { memory: Arc::clone(&self.memory), range: start..start + len, was_late })
    }
}

impl Loan {
    pub(in crate::file) fn bytes(&self) -> &[u8] {
        // There are some: a loan is made of what has arrived.
        self.memory.wait().map_or(&[], |memory| &memory[self.range.clone()])
    }

    pub(in crate::file) const fn len(&self) -> usize {
        self.range.end - self.range.start
    }
}

//! A part of a file that is read ahead, and the memory that it is read into.

use std::ops::Range;
use std::sync::Arc;
use undercroft_block::SharedRead;

/// A part of a file, on its way or here.
#[derive(Debug)]
pub(crate) struct Piece {
    /// Bytes of the file.
    pub(crate) range: Range<u64>,
    /// Bytes of the memory before them.
    pub(crate) skipped: usize,
    /// [Version](crate::inode::FileLocks::stable_version) of the file's data.
    pub(crate) version: u64,
    /// Pieces of several files may lie in it.
    pub(crate) memory: Arc<SharedRead>,
}

/// Bytes that were read ahead, where they lie. They stay as they are when the file changes.
#[derive(Debug)]
pub(crate) struct Loan {
    memory: Arc<SharedRead>,
    /// Of the memory.
    range: Range<usize>,
    /// They had to be waited for.
    pub(crate) was_late: bool,
}

impl Piece {
    /// The bytes from the byte `at` of the file on, as far as the piece has them, at most `len`.
    /// `None` if its read failed.
    pub(crate) fn lend(&self, at: u64, len: usize) -> Option<Loan> {
        let was_late = !self.memory.is_complete();
        self.memory.wait().ok()?;
        // Both less than a piece.
        let start = self.skipped + (at - self.range.start) as usize;
        let len = len.min((self.range.end - at) as usize);
        Some(Loan { memory: Arc::clone(&self.memory), range: start..start + len, was_late })
    }
}

impl Loan {
    pub(crate) fn bytes(&self) -> &[u8] {
        // There are some: a loan is made of what has arrived.
        self.memory.wait().map_or(&[][..], |memory| &memory[self.range.clone()])
    }

    pub(crate) const fn len(&self) -> usize {
        self.range.end - self.range.start
    }
}

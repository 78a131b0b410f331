//! A part of a file that was read ahead, in one piece of memory.

use std::ops::Range;
use undercroft_block::{Buffer, Waiter};

/// A part of a file, on its way or here.
#[derive(Debug)]
pub(super) struct Piece {
    /// Bytes of the file.
    pub(super) range: Range<u64>,
    /// Bytes of the memory before them.
    skipped: usize,
    /// [Version](crate::inode::FileLocks::stable_version) of the file's data.
    pub(super) version: u64,
    arrival: Arrival,
}

#[derive(Debug)]
enum Arrival {
    OnItsWay(Waiter),
    Here(Buffer),
}

/// Bytes copied from a piece.
pub(super) struct Copied {
    /// The piece, here by now.
    pub(super) piece: Piece,
    /// How many there were.
    pub(super) len: usize,
    /// They had to be waited for.
    pub(super) was_late: bool,
}

impl Piece {
    pub(super) fn new(range: Range<u64>, skipped: usize, version: u64, waiter: Waiter) -> Self {
        Self { range, skipped, version, arrival: Arrival::OnItsWay(waiter) }
    }

    /// Copies the bytes from the byte `at` of the file on, as far as it has them. `None` if its
    /// read failed.
    pub(super) fn copy(self, at: u64, bytes: &mut [u8]) -> Option<Copied> {
        let (buffer, was_late) = match self.arrival {
            Arrival::OnItsWay(waiter) => {
                let was_late = !waiter.is_complete();
                (waiter.wait().into_buffer().ok()?, was_late)
            }
            Arrival::Here(buffer) => (buffer, false),
        };
        // Both less than a piece.
        let inside = self.skipped + (at - self.range.start) as usize;
        let len = bytes.len().min((self.range.end - at) as usize);
        bytes[..len].copy_from_slice(&buffer[inside..inside + len]);
        let piece = Self { arrival: Arrival::Here(buffer), ..self };
        Some(Copied { piece, len, was_late })
    }
}

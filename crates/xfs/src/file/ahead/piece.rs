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

/// Bytes copied from a piece.
pub(super) struct Copied {
    /// How many there were.
    pub(super) len: usize,
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
    /// Copies the bytes from the byte `at` of the file on, as far as it has them. `None` if its
    /// read failed.
    pub(super) fn copy(&self, at: u64, bytes: &mut [u8]) -> Option<Copied> {
        let was_late = self.memory.is_on_its_way();
        let memory = self.memory.wait()?;
        // Both less than a piece.
        let inside = self.skipped + (at - self.range.start) as usize;
        let len = bytes.len().min((self.range.end - at) as usize);
        bytes[..len].copy_from_slice(&memory[inside..inside + len]);
        Some(Copied { len, was_late })
    }
}

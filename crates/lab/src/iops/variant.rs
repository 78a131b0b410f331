//! The variants measured.

use super::fio::Engine;
use super::work::FileWork;

/// A driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverName {
    /// Nothing is moved and nothing waited for: the cost of the layer alone.
    Null,
    /// Bytes are copied from and to memory.
    Memory,
    /// A file, by io_uring.
    FileIoUring,
    /// A file, by threads that block.
    FileThreads,
}

impl DriverName {
    /// Every driver.
    pub const ALL: [Self; 4] = [Self::Null, Self::Memory, Self::FileIoUring, Self::FileThreads];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Memory => "memory",
            Self::FileIoUring => "file-io_uring",
            Self::FileThreads => "file-threads",
        }
    }

    /// fio's engine of the same kind.
    pub(super) fn engine(self) -> Option<Engine> {
        match self {
            Self::Null | Self::Memory => None,
            Self::FileIoUring => Some(Engine::IoUring),
            Self::FileThreads => Some(Engine::Psync),
        }
    }
}

/// One variant.
pub(super) struct Variant {
    pub(super) driver: DriverName,
    /// Whether fio does it.
    pub(super) fio: bool,
    pub(super) threads: usize,
    pub(super) batch: usize,
    pub(super) work: FileWork,
}

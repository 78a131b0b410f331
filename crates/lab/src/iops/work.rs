//! The I/O done to a device, by us or by fio.

use super::outcome::Access;

/// Size, place and kind of the I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileWork {
    pub(super) access: Access,
    pub(super) block_bytes: u64,
    pub(super) file_bytes: u64,
    /// I/Os that each thread keeps outstanding.
    pub(super) depth: usize,
    pub(super) direct: bool,
}

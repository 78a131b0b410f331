//! The limits of a device on requests.

use super::SECTOR_SIZE;

/// The limits on requests to a device. The plug merges within these limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// First byte and length of every request are multiples of this, in bytes: the logical block
    /// size of the device, a multiple of [`SECTOR_SIZE`].
    pub block_bytes: u64,
    /// Most bytes in a request; zeroes, discards and clones carry none and are not limited.
    pub max_request_bytes: u64,
    /// Most pieces of memory in a request.
    pub max_segments: usize,
    /// Start and length of every piece of memory are multiples of this, in bytes; 1 = any.
    pub memory_alignment: usize,
    /// Whether the device can be asked to share the blocks of files. Others never see such a bio.
    pub clones_ranges: bool,
}

impl Default for Limits {
    /// Any whole sectors, any memory; requests of at most 1 MiB in 1,024 pieces (what one system
    /// call takes).
    fn default() -> Self {
        Self {
            block_bytes: SECTOR_SIZE,
            max_request_bytes: 1 << 20,
            max_segments: 1024,
            memory_alignment: 1,
            clones_ranges: false,
        }
    }
}

impl Limits {
    /// What satisfies both: for a device over several others.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            block_bytes: self.block_bytes.max(other.block_bytes),
            max_request_bytes: self.max_request_bytes.min(other.max_request_bytes),
            max_segments: self.max_segments.min(other.max_segments),
            memory_alignment: self.memory_alignment.max(other.memory_alignment),
            clones_ranges: self.clones_ranges && other.clones_ranges,
        }
    }
}

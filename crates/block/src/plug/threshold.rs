//! When a plug flushes itself.

/// How much a plug stages, over all leaves, before it flushes itself. Up to half of that may stay
/// then, in requests that are small yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlugThreshold {
    /// Number of bios.
    pub bios: usize,
    /// Sum of their lengths in bytes.
    pub bytes: u64,
}

impl Default for PlugThreshold {
    /// Enough for several of the largest requests of small files, little enough that a plug does
    /// not hold back a noticeable share of a buffer pool.
    fn default() -> Self {
        Self { bios: 1024, bytes: 4 << 20 }
    }
}

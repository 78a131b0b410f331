//! How a check works.

/// Threads, limits and ways of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Threads that read and check, at least 1.
    pub threads: usize,
    /// Findings handed over; further ones are only counted.
    pub findings_max: u64,
    /// Check a volume that was not unmounted as its journal makes it, replayed in memory.
    pub replay: bool,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { threads: 2, findings_max: 10_000, replay: true }
    }
}

//! Shared reads and writes of the running program, counted in the shuttle build.

use std::sync::atomic::{AtomicU64, Ordering};

static LOADS: AtomicU64 = AtomicU64::new(0);
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Accesses to shared memory since the program began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Atomic loads.
    pub loads: u64,
    /// Atomic stores, read-modify-writes and locks taken.
    pub writes: u64,
}

/// The counts so far.
pub fn so_far() -> Counts {
    Counts { loads: LOADS.load(Ordering::Relaxed), writes: WRITES.load(Ordering::Relaxed) }
}

pub(super) fn load() {
    LOADS.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn write() {
    WRITES.fetch_add(1, Ordering::Relaxed);
}

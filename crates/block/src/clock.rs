//! Time for latencies and limits.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock.
pub(crate) fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The monotonic clock counts from the start of the machine, so neither part is negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// When and where something was submitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) nanoseconds: u64,
    pub(crate) cpu: u32,
}

impl Stamp {
    /// Now, here.
    pub(crate) fn now() -> Self {
        Self { nanoseconds: nanoseconds(), cpu: crate::affinity::current_cpu() }
    }
}

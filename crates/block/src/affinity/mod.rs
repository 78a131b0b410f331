//! Which CPU does what.

/// The CPU that the calling thread runs on.
pub(crate) fn current_cpu() -> u32 {
    // The kernel numbers CPUs from zero on.
    rustix::thread::sched_getcpu() as u32
}

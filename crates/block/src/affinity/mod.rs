//! Which CPU does what: sets of CPUs and their caches, where requests are started and answered,
//! and how an answer gets to another CPU.

mod cpus;
pub(crate) mod list;
mod placement;
pub(crate) mod redirect;

pub use cpus::{CpuSet, ParseCpuSetError, Topology};
pub use placement::{CompletionPlace, Placement, QueuePlace, Redirect, RqAffinity};

/// The CPU that the calling thread runs on.
pub(crate) fn current_cpu() -> u32 {
    // The kernel numbers CPUs from zero on.
    rustix::thread::sched_getcpu() as u32
}

//! Which CPU does what: sets of CPUs and their caches, where requests are started and answered,
//! and how an answer gets to another CPU.

mod cpus;
mod placement;
pub(crate) mod redirect;
mod stamp;

pub(crate) use cpus::current_cpu;
pub use cpus::{CpuSet, ParseCpuSetError, Topology};
pub use placement::{CompletionPlace, Placement, QueuePlace, Redirect, RqAffinity};
pub(crate) use stamp::Stamp;

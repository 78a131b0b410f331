//! CPUs: sets of them, their caches, and when and where something was submitted.

mod cpus;
mod stamp;

pub(crate) use cpus::current_cpu;
pub use cpus::{CpuSet, ParseCpuSetError, Topology};
pub(crate) use stamp::Stamp;

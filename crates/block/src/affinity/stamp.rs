//! When and where something was submitted.

use super::cpus::current_cpu;
use crate::threads::clock;

/// A time and a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    pub(crate) nanoseconds: u64,
    pub(crate) cpu: u32,
}

impl Stamp {
    /// Now, here.
    pub(crate) fn now() -> Self {
        Self { nanoseconds: clock::nanoseconds(), cpu: current_cpu() }
    }
}

//! A program and its server on one processor.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

/// Binds this thread, and what it starts, to the processor that it is on.
pub(super) fn bind() -> Result<()> {
    let mut only = CpuSet::new();
    only.set(sched_getcpu());
    sched_setaffinity(None, &only).context("cannot bind to one processor")
}

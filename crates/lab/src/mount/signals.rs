//! Signals that wait.

use std::io;

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

use crate::error::LabError;

/// As long as it lives, signals that end the process wait: in this thread, and in those that it
/// starts. Programs that it starts get theirs.
pub(super) struct Deferred {
    before: SigSet,
}

impl Deferred {
    pub(super) fn begin() -> Result<Self, LabError> {
        let ends: SigSet = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
        let before = ends.thread_swap_mask(SigmaskHow::SIG_BLOCK);
        Ok(Self { before: before.map_err(|errno| LabError::Signals(io::Error::from(errno)))? })
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        // It fails for a wrong `how` only. A signal that has waited ends the process here.
        let _ = self.before.thread_set_mask();
    }
}

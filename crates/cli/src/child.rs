//! Programs that this one runs.

use nix::sys::signal::{SigSet, SigmaskHow};
use std::io;
use std::process::{Child, Command};

/// Starts a program without the mask of this thread, which blocks what this program waits for or wants
/// as an error: with it, an interrupt would not reach the other.
pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_UNBLOCK)?;
    let child = command.spawn();
    mask.thread_set_mask()?;
    child
}

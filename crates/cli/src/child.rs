//! Programs that this one runs.

use process_wrap::std::{ChildWrapper, CommandWrap, ResetSigmask};
use std::io;
use std::process::Command;

/// Starts a program without the signal mask of this thread, which blocks what this program waits for or
/// wants as an error: with it, an interrupt would not reach the other. The new process clears it by itself:
/// a thread that did so meanwhile would be ended by a signal that comes then.
pub(crate) fn spawn(command: Command) -> io::Result<Box<dyn ChildWrapper>> {
    let mut command = CommandWrap::from(command);
    command.wrap(ResetSigmask);
    command.spawn()
}

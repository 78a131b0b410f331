//! `undercroft completions`.

use crate::report::Outcome;
use anyhow::Result;
use clap::Command;
use clap_complete::Shell;
use std::io::Write;

/// Print the completions of a shell.
///
/// For example: undercroft completions bash > ~/.local/share/bash-completion/completions/undercroft
#[derive(clap::Args)]
pub(super) struct Args {
    /// The shell.
    shell: Shell,
}

/// Prints the completions of `command`, which is all of the command line.
pub(super) fn run(args: &Args, mut command: Command, out: &mut dyn Write) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "undercroft", &mut script);
    out.write_all(&script)?;
    Ok(Outcome::Done)
}

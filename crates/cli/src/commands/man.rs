//! `undercroft man`.

use crate::report::Outcome;
use anyhow::{Context, Result};
use clap::Command;
use std::io::Write;
use std::path::PathBuf;

/// Print the manual page, or write one for each subcommand.
///
/// For example: undercroft man | man -l -
#[derive(clap::Args)]
pub(super) struct Args {
    /// Write the pages of the command and of all subcommands into this directory.
    #[arg(long, value_name = "DIRECTORY")]
    all: Option<PathBuf>,
}

/// Prints the pages of `command`, which is all of the command line.
pub(super) fn run(args: &Args, command: Command, out: &mut dyn Write) -> Result<Outcome> {
    match &args.all {
        Some(directory) => clap_mangen::generate_to(command, directory)
            .with_context(|| format!("cannot write pages into {}", directory.display()))?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            out.write_all(&page)?;
        }
    }
    Ok(Outcome::Done)
}

//! `undercroft man`.

use crate::failure::Usage;
use crate::report::Outcome;
use anyhow::{Context, Result};
use clap::Command;
use std::io::Write;
use std::path::PathBuf;

/// Print a manual page: of all, or of a command; or write them all.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A command, with its own commands behind it: lab tags.
    command: Vec<String>,

    /// Write the pages of the command and of all subcommands into this directory.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "command")]
    all: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  undercroft man | man -l -
  undercroft man build | man -l -";

/// Prints the pages of `command`, which is all of the command line.
pub(super) fn run(args: &Args, mut command: Command, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(directory) = &args.all {
        clap_mangen::generate_to(command, directory)
            .with_context(|| format!("cannot write pages into {}", directory.display()))?;
        return Ok(Outcome::Done);
    }
    // Gives pages of subcommands their whole names.
    command.build();
    let mut found = &command;
    for word in &args.command {
        found = found.find_subcommand(word).ok_or_else(|| {
            Usage(format!("{word} is no command; `undercroft --help` lists them"))
        })?;
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(found.clone()).render(&mut page)?;
    out.write_all(&page)?;
    Ok(Outcome::Done)
}

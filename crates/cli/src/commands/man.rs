//! `undercroft man`.

use super::Cli;
use crate::report::Outcome;
use anyhow::{Context, Result};
use clap::CommandFactory;
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

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    match &args.all {
        Some(directory) => clap_mangen::generate_to(Cli::command(), directory)
            .with_context(|| format!("cannot write pages into {}", directory.display()))?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            out.write_all(&page)?;
        }
    }
    Ok(Outcome::Done)
}

//! `undercroft dedupe`.

use super::clone::RangeArgs;
use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;

/// Let a file share the blocks of another where both are the same.
///
/// The two ranges are compared first; if they differ, nothing is changed and the exit status is 1.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to share blocks of.
    source: OsString,

    /// The file that gives up its own.
    path: OsString,

    #[command(flatten)]
    range: RangeArgs,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let (source, target) = (session.open(&self.source)?, session.open(&self.path)?);
        let same = target
            .dedupe_range(&source, &self.range.range(source.size()))
            .map_err(|error| renamed(error, &self.path))?;
        if same {
            return Ok(Outcome::Done);
        }
        writeln!(out, "the ranges differ")?;
        Ok(Outcome::Findings)
    }
}

//! `undercroft lab plot`.

use super::table;
use crate::report::Outcome;
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use undercroft_lab::plot;

/// Draw recorded experiments as one SVG picture.
///
/// For example: undercroft lab tags --record tags.jsonl; undercroft lab plot tags.jsonl > tags.svg
#[derive(clap::Args)]
pub(super) struct Args {
    /// A file of records, one JSON object a line, or a page of `lab report`; - for standard input.
    records: PathBuf,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    out.write_all(plot(&table::read(&args.records)?).as_bytes())?;
    Ok(Outcome::Done)
}

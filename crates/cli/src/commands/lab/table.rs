//! `undercroft lab table`.

use crate::report::Outcome;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use undercroft_lab::{Record, read_records, write_tables};

/// Print the tables of recorded experiments.
///
/// For example: undercroft lab tags --record tags.jsonl; undercroft lab table tags.jsonl
#[derive(clap::Args)]
pub(super) struct Args {
    /// A file of records, one JSON object a line; - for standard input.
    records: PathBuf,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    write_tables(&read(&args.records)?, out)?;
    Ok(Outcome::Done)
}

/// The records in the file at `path`.
pub(super) fn read(path: &Path) -> Result<Vec<Record>> {
    let mut input: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        Box::new(BufReader::new(file))
    };
    read_records(&mut *input).with_context(|| path.display().to_string())
}

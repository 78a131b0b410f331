//! `undercroft lab table`.

use crate::report::Outcome;
use anyhow::{Context, Result};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use undercroft_lab::{Record, read_records, records_of_page, write_tables};

/// Print the tables of recorded experiments.
///
/// For example: undercroft lab tags --record tags.jsonl; undercroft lab table tags.jsonl
#[derive(clap::Args)]
pub(super) struct Args {
    /// A file of records, one JSON object a line, or a page of `lab report`; - for standard input.
    records: PathBuf,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    write_tables(&read(&args.records)?, out)?;
    Ok(Outcome::Done)
}

/// The records in the file at `path`: one a line, or those inside a page.
pub(super) fn read(path: &Path) -> Result<Vec<Record>> {
    let text = if path.as_os_str() == "-" {
        io::read_to_string(io::stdin().lock())
    } else {
        fs::read_to_string(path)
    };
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let records = if text.trim_start().starts_with('<') {
        records_of_page(&text)
    } else {
        read_records(&mut text.as_bytes())
    };
    records.with_context(|| path.display().to_string())
}

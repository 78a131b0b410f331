//! `undercroft lab compare`.

use super::table;
use crate::output_file;
use crate::report::Outcome;
use anyhow::{Result, bail};
use std::io::Write;
use std::path::PathBuf;
use undercroft_lab::Comparison;

/// Hold two files of records against each other: two machines, kernels or commits.
///
/// Each case that both have gets a row: the median of its rate in each, and how often as fast the
/// second is as the first, with an interval of 95 % by drawing from the runs. It is called slower or
/// faster where the whole interval is, and there were three runs or more.
///
/// For example: undercroft lab iops --record a.jsonl; undercroft lab iops --record b.jsonl;
/// undercroft lab compare a.jsonl b.jsonl
#[derive(clap::Args)]
pub(super) struct Args {
    /// Records, one JSON object a line, or a page of `lab report`.
    first: PathBuf,

    /// The records that are held against them.
    second: PathBuf,

    /// Exit with 1 if a case of the second is slower by more than this.
    #[arg(long, value_name = "PER CENT", value_parser = percent)]
    fail_slower: Option<f64>,

    /// Draw the ratios into this file, as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Replace that file if it is there.
    #[arg(long, requires = "plot")]
    force: bool,
}

/// `5%` or `5` as a share.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>().ok();
    let share = number.map(|number| number / 100.0).filter(|share| (0.0..1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 99, such as 5%".to_owned())
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let comparison = Comparison::of(&table::read(&args.first)?, &table::read(&args.second)?);
    if comparison.is_empty() {
        bail!(
            "{} and {} have no case in common: record the same commands",
            args.first.display(),
            args.second.display()
        );
    }
    comparison.write_table(out)?;
    if let Some(path) = &args.plot {
        output_file::write(path, comparison.plot().as_bytes(), args.force)?;
    }
    let slower = args.fail_slower.map(|share| comparison.slower_than(share)).unwrap_or_default();
    if slower.is_empty() { Ok(Outcome::Done) } else { Ok(Outcome::Findings) }
}

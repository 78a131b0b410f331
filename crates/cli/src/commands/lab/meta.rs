//! `undercroft lab meta`.

use super::runner::{self, CommonArgs, PlaceArgs, chosen_or};
use crate::report::Outcome;
use anyhow::Result;
use std::io::Write;
use undercroft_lab::meta::{self, MetaOptions};

/// Create, look at and delete empty files: operations on metadata alone.
///
/// All files are created, then the metadata of each is read by its name, then all are deleted, in
/// the same order; after each of the three steps everything is synced. On a volume of ours, which
/// is changed through its journal, an operation is a call of the library; in a directory of any
/// mounted file system it is one system call on an open directory: mknodat, fstatat, unlinkat. One
/// generator does both, and with both, the places take turns, round by round (--repeat, 3 without
/// it). Nothing stays.
///
/// Reading the table: calls/s is the median of the rounds, without the sync and with it; ratio the
/// median of the ratios of each round to that of the first place, which is the directory, with its
/// interval of 95 %. CPU time is that of this process: the kernel's own threads are not counted.
///
/// For example: undercroft lab meta --image new.img --on /mnt/xfs --directories 1 --threads 4
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    places: PlaceArgs,

    /// Files.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    files: u32,

    /// Directories that the files are spread over; may be given several times. Without it 1 and
    /// 1,000.
    #[arg(long = "directories", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    directories: Vec<u32>,

    /// Threads; may be given several times. Without it 1 and 4.
    #[arg(long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,

    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let directories: Vec<u32> = chosen_or(&args.directories, &[1, 1000]);
    let options = MetaOptions {
        places: args.places.places(),
        threads: chosen_or(&args.threads, &[1, 4]),
        directories: directories.into_iter().map(|count| count as usize).collect(),
        files: args.files as usize,
    };
    runner::run(&args.common, out, |run, found| meta::run(&options, run, found))?;
    Ok(Outcome::Done)
}

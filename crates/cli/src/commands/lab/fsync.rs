//! `undercroft lab fsync`.

use super::runner::{self, CommonArgs, PlaceArgs, chosen_or};
use crate::report::Outcome;
use crate::value;
use anyhow::Result;
use std::io::Write;
use undercroft_lab::fsync::{self, FsyncOptions, Mode, Workload};

/// Write small files and make each durable: the cost of an fsync, and the saving of a ticket.
///
/// In 2014 fs_mark asked for the fsync of 800,000 files at once, each by a kernel thread that
/// waited: 400,000 context switches a second, and files/s that differed by a quarter from one
/// iteration to the next (Chinner, Axboe). Here an fsync is a ticket, and one write of the journal
/// serves all that wait.
///
/// Modes are those of fs_mark, and one more:
///
///   0  no sync                          4  sync, then as 3
///   1  fsync before each close          5  all files, then opened again in order for fsync
///   2  all files, then sync, one fsync  6  sync, then as 5
///   3  all files, then opened again in reverse order for fsync
///   async  a ticket for each file, all waited for at the end of the iteration
///
/// The files go to a volume of ours, which is changed, or to a directory of any mounted file
/// system, where async asks io_uring for the fsync; one generator writes both. Files stay.
///
/// Reading the tables: first one for each case in the shape of fs_mark, with a line for each
/// iteration (--repeat); App Overhead is the time in microseconds outside of calls of the file
/// system. Then one line for each case; switches/file are context switches of this process, and
/// those of the whole machine, in which the threads of the kernel are counted.
///
/// For example: undercroft lab fsync --image new.img --on /mnt/xfs --mode 1 --mode async
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    places: PlaceArgs,

    /// When files are made durable, 0 to 6 or async; may be given several times.
    #[arg(long = "mode", value_name = "MODE", default_values_t = [Mode::FsyncBeforeClose, Mode::Async])]
    modes: Vec<Mode>,

    /// Threads; may be given several times. Without it 1, or 64 for the filebench profile.
    #[arg(long = "threads", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,

    /// Files of each thread in an iteration.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    files: u64,

    /// Bytes of a file.
    #[arg(long, value_name = "BYTES", value_parser = value::size, default_value = "4096")]
    size: u64,

    /// Directories of each thread.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    directories: u16,

    /// Iterations ahead of the measured ones. They fill the caches, so that the first measured one
    /// is like all others.
    #[arg(long, value_name = "N", default_value_t = 0)]
    warm_up: u16,

    /// The filebench profile: files from 4 KiB to 500 MB until so many bytes are written.
    #[arg(long, value_name = "BYTES", value_parser = value::size, conflicts_with_all = ["files", "size"])]
    filebench: Option<u64>,

    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (workload, threads) = match args.filebench {
        Some(total) => (Workload::Filebench { total }, 64),
        None => (Workload::Equal { files: args.files, size: args.size }, 1),
    };
    let options = FsyncOptions {
        places: args.places.places(),
        modes: args.modes.clone(),
        threads: chosen_or(&args.threads, &[threads]),
        directories: args.directories.into(),
        warm_up: args.warm_up.into(),
        workload,
    };
    runner::run(&args.common, out, |run, found| fsync::run(&options, run, found))?;
    Ok(Outcome::Done)
}

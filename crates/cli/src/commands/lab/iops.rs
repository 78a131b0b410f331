//! `undercroft lab iops`.

use super::runner::{self, CommonArgs, chosen_or};
use crate::report::Outcome;
use crate::value;
use anyhow::{Result, ensure};
use clap::ValueEnum;
use std::io::Write;
use std::path::{Path, PathBuf};
use undercroft_lab::iops::{self, Access, DriverName, IopsOptions};

/// Count I/Os a second: the layer alone, and the file drivers beside fio.
///
/// Each submitting thread drives a hardware queue of its own and keeps a batch of random I/Os
/// outstanding. The null driver moves nothing, so its figure is the cost of the layer: bio, plug,
/// tag, dispatch, completion. SPDK publishes 10.8 million I/Os a second on one core for the same.
/// Two threads should do close to twice of one: no counter is shared between them.
///
/// With --fio, fio does the same work on the same file right after each file driver, with the
/// engine of the same kind: io_uring (registered buffers and files) beside file-io_uring, psync
/// with as many jobs as I/Os outstanding beside file-threads.
///
/// Reading the table: CPU ns/IO is CPU time of the whole process for each I/O. The last columns
/// give a driver's IOPS beside fio's, run by run (median and interval of 95 %), and its CPU time as a
/// share of fio's: more than 1 and less than 100% are better.
///
/// Examples:
///   undercroft lab iops --driver null --threads 1 --batch 32 --json
///   undercroft lab iops --driver file-io_uring --driver file-threads --batch 32 --fio
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Only this driver; may be given several times. Without it, null.
    #[arg(long = "driver", value_name = "DRIVER")]
    drivers: Vec<DriverArg>,

    /// Submitting threads; may be given several times. Without it, 1 and 2.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Vec<u16>,

    /// I/Os that a thread submits together; may be given several times. Without it, 1 to 64.
    #[arg(long = "batch", value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    batches: Vec<u16>,

    /// Read or write; may be given several times.
    #[arg(long = "access", value_name = "ACCESS", default_value = "read")]
    accesses: Vec<AccessArg>,

    /// Size of an I/O.
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "4K")]
    block: u64,

    /// How file drivers open the file; may be given several times.
    #[arg(long = "cache", value_name = "HOW", default_value = "direct")]
    caches: Vec<CacheArg>,

    /// The file for file drivers; made if it is not there. Without it, a temporary one in this
    /// directory.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    /// A file that is there may be overwritten: by writes, and where it is shorter than --file-size.
    #[arg(long, requires = "file")]
    force: bool,

    /// Size of the file.
    #[arg(long, value_name = "SIZE", value_parser = value::size, default_value = "256M")]
    file_size: u64,

    /// Run fio beside the file drivers; it must be installed.
    #[arg(long)]
    fio: bool,

    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum DriverArg {
    Null,
    Memory,
    #[value(name = "file-io_uring")]
    FileIoUring,
    FileThreads,
}

#[derive(Clone, Copy, ValueEnum)]
enum AccessArg {
    Read,
    Write,
}

#[derive(Clone, Copy, ValueEnum)]
enum CacheArg {
    /// Past the page cache (O_DIRECT).
    Direct,
    /// Through the page cache.
    Buffered,
}

impl From<DriverArg> for DriverName {
    fn from(driver: DriverArg) -> Self {
        match driver {
            DriverArg::Null => Self::Null,
            DriverArg::Memory => Self::Memory,
            DriverArg::FileIoUring => Self::FileIoUring,
            DriverArg::FileThreads => Self::FileThreads,
        }
    }
}

impl From<AccessArg> for Access {
    fn from(access: AccessArg) -> Self {
        match access {
            AccessArg::Read => Self::Read,
            AccessArg::Write => Self::Write,
        }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    ensure!(
        args.block > 0 && args.block.is_multiple_of(512) && args.block <= 1 << 20,
        "--block {}: write a multiple of 512 bytes, at most 1M",
        args.block
    );
    ensure!(
        args.file_size >= args.block,
        "--file-size {}: the file must hold one I/O of {} bytes",
        args.file_size,
        args.block
    );
    if let Some(file) = args.file.as_ref().filter(|_| !args.force) {
        check_kept(file, args)?;
    }
    let defaults = IopsOptions::default();
    let numbers = |given: &[u16], defaults: Vec<usize>| {
        if given.is_empty() { defaults } else { given.iter().map(|&one| one.into()).collect() }
    };
    let options = IopsOptions {
        drivers: chosen_or(&args.drivers, &defaults.drivers),
        threads: numbers(&args.threads, defaults.threads),
        batches: numbers(&args.batches, defaults.batches),
        accesses: chosen_or(&args.accesses, &defaults.accesses),
        block_bytes: args.block,
        direct: args.caches.iter().map(|cache| matches!(cache, CacheArg::Direct)).collect(),
        file: args.file.clone(),
        file_bytes: args.file_size,
        fio: args.fio,
    };
    runner::run(&args.common, out, |run, found| iops::run(&options, run, found))?;
    Ok(Outcome::Done)
}

/// Fails if the experiment would overwrite a file that is there.
fn check_kept(file: &Path, args: &Args) -> Result<()> {
    let Ok(metadata) = file.metadata() else { return Ok(()) };
    let path = file.display();
    ensure!(
        !args.accesses.iter().any(|access| matches!(access, AccessArg::Write)),
        "{path}: exists, and writes would go over it; use --force if they may"
    );
    ensure!(
        !metadata.is_file() || metadata.len() >= args.file_size,
        "{path}: has {} bytes, fewer than --file-size; use --force to write it anew",
        metadata.len()
    );
    Ok(())
}

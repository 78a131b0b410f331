//! `undercroft lab mount`.

use super::runner::{self, CommonArgs};
use crate::report::Outcome;
use crate::value;
use anyhow::Result;
use std::io::Write;
use std::path::PathBuf;
use undercroft_lab::mount::{self, MountOptions, Source, Tunables};

/// Build a project on mounted volumes while requests are queued and completed on chosen CPUs.
///
/// In 2008 Brunelle looked for the effect of placement (see `lab affinity`) where it would matter:
/// on twelve disks at a time he made a file system, unpacked the source of Linux, compiled it and
/// cleaned up. Here the volumes are ours, on files, mounted through FUSE. The settings are those of
/// the source, for the queue of each disk:
///
///   q0   start requests on the CPU that submits them  q1   on the CPU of the disk
///   c0   complete them as rq says                     c1   on the CPU of the disk
///   rq0  complete where the end is noticed            rq1  on a CPU that shares a cache with the
///                                                          submitter
///
/// The CPU of the disk, that of its interrupts in the source, is another one for each disk. In the
/// letters of `lab affinity`: the application runs anywhere, Q is A or I, and C is I with c1.
///
/// The settings take turns, after a run that does not count. All disks do the same step at a time:
///
///   mkfs   an empty volume       make   make -j4, after ./configure where there is no makefile
///   untar  the project unpacked  clean  make clean
///
/// Each step is timed with its mount and unmount. The project is generated from the seed, so that
/// every machine builds the same; its program has to print what it should, and each volume is
/// checked in the end. With --source it is any tree that make builds.
///
/// Reading the table: seconds of all disks in all runs; on the right how many times as long as with
/// the first setting, run by run. Then I/Os of a disk by place, as in `lab affinity`.
///
/// Needed are /dev/fuse, tar, make and a C compiler.
///
/// For example: undercroft lab mount --files 24 --repeat 5
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Volumes that are worked on at a time.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    disks: u16,

    /// Size of each volume.
    #[arg(long, value_name = "BYTES", value_parser = value::size, default_value = "512M")]
    size: u64,

    /// C files of the project that is generated.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    files: u16,

    /// Build the tree in this archive instead.
    #[arg(long, value_name = "TAR", conflicts_with = "files")]
    source: Option<PathBuf>,

    /// Make volumes in this directory, instead of that for temporary files.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    #[command(flatten)]
    common: CommonArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let options = MountOptions {
        scratch: args.scratch.clone().unwrap_or_else(std::env::temp_dir),
        tunables: Tunables::ROWS.to_vec(),
        disks: args.disks.into(),
        bytes: args.size,
        source: match &args.source {
            Some(archive) => Source::Archive(archive.clone()),
            None => Source::Generated(args.files.into()),
        },
    };
    runner::run(&args.common, out, |run, found| mount::run(&options, run, found))?;
    Ok(Outcome::Done)
}

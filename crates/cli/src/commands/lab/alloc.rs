//! `undercroft lab alloc`.

use super::runner::{self, CommonArgs, chosen_or};
use crate::output_file;
use crate::report::Outcome;
use crate::value;
use anyhow::Result;
use clap::ValueEnum;
use std::io::Write;
use std::path::PathBuf;
use undercroft_lab::alloc::{self, AllocOptions, Case, Variant};

/// Allocate extents on clean and on aged volumes: the experiment of 2019 on near mode.
///
/// Near mode looks for space close to a file. Since 2019 it looks by size and by place at once
/// (Foster, Linux 5.5). To show that extents stayed where they were, 64 writers created, wrote and
/// synced 40,000 files of 4 KiB to 500 MB until a volume of 500 GB in 16 groups was 70 % full. Then
/// the distance of each extent from its hint was counted. The hint is the extent before it in the
/// file, or the inode.
///
///   clean         the workload on a new volume
///   random        the workload where free space has many extents of random lengths
///   pathological  single allocations where --extents free extents near the hint are too short
///   sequential    single allocations, each behind the last, on a clean volume
///   growth        the pathological map with 1,000 to 10,000,000 free extents
///
///   near          the search of 2019
///   near-2018     the walk through the by-block tree that it replaced
///   by-size       the smallest extent that is long enough, wherever it is
///   indexed       one that is long enough and close, found with an index in memory; it leaves close
///                 space to requests that need it
///
/// Volumes are sparse files: metadata is real, data is accepted and dropped, so 500 GB need some
/// 400 MB. Each volume is checked when its run is over. With --on the same files are made in a
/// mounted directory; unmount it then and let `undercroft frag --below` tell where they are.
///
/// A file gets space ahead when it is written, which is freed when it is closed. Up to --in-flight
/// files keep theirs until they have reached the disk. One directory is filled after the other.
///
/// In the source 8.5 % of the extents of a clean volume are in another group than their hint,
/// mostly because the header of the group was locked. Here locks are held for microseconds, so
/// fewer are; --header-writes simulates the difference.
///
/// Reading the tables: "other group" are extents in another group than their hint, "with fillers"
/// the same when the files that make the free space are counted in, as in the source.
///
/// For example: undercroft lab alloc --case random --variant near --variant indexed
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Only this part; may be given several times.
    #[arg(long = "case", value_name = "CASE")]
    cases: Vec<CaseArg>,

    /// Only this variant; may be given several times.
    #[arg(long = "variant", value_name = "VARIANT")]
    variants: Vec<VariantArg>,

    /// Size of the volume, 500 GiB without it. Files grow and shrink with it.
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    size: Option<u64>,

    /// Groups of the volume, 16 without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    groups: Option<u32>,

    /// Writers, 64 without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    writers: Option<u16>,

    /// Files that are on their way to the disk at a time, as many as writers without it. Until one
    /// has arrived it keeps the space that was set aside behind its end; with 0 none is.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1024))]
    in_flight: Option<u16>,

    /// Files, 40,000 without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    files: Option<u32>,

    /// Share of the extents, 0 to 1, that are wanted from a group whose header is being written: the
    /// kernel holds its lock meanwhile, and the extent goes to another group. About 0.05 gives what
    /// the source has.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    header_writes: f64,

    /// Standard deviation of the logarithm of a file's size.
    #[arg(long, value_name = "SIGMA", value_parser = spread)]
    spread: Option<f64>,

    /// Free extents of the pathological map, a million without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000_000))]
    extents: Option<u32>,

    /// Bytes of metadata to keep in memory while single allocations are timed, instead of 64 MiB: the
    /// trees of ten million free extents take more.
    #[arg(long, value_name = "BYTES", value_parser = value::size)]
    memory: Option<u64>,

    /// Make volumes in this directory.
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,

    /// Keep the volume of the last run of the workload in this file.
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,

    /// Replace that file if it is there.
    #[arg(long, requires = "keep")]
    force: bool,

    /// Run the workload in this mounted directory instead.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cases", "variants", "keep", "scratch"])]
    on: Option<PathBuf>,

    /// With --on, write and sync the data instead of allocating space for it.
    #[arg(long, requires = "on")]
    data: bool,

    #[command(flatten)]
    common: CommonArgs,
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "write a number from 0 to 1".to_owned())
}

/// A deviation for which sizes stay as they are.
fn spread(text: &str) -> Result<f64, String> {
    let spread = text.parse().ok().filter(|spread| (0.0..=10.0).contains(spread));
    spread.ok_or_else(|| "write a number from 0 to 10".to_owned())
}

#[derive(Clone, Copy, ValueEnum)]
enum CaseArg {
    Clean,
    Random,
    Pathological,
    Sequential,
    Growth,
}

impl From<CaseArg> for Case {
    fn from(case: CaseArg) -> Self {
        match case {
            CaseArg::Clean => Self::Clean,
            CaseArg::Random => Self::Random,
            CaseArg::Pathological => Self::Pathological,
            CaseArg::Sequential => Self::Sequential,
            CaseArg::Growth => Self::Growth,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum VariantArg {
    Near,
    #[value(name = "near-2018")]
    Near2018,
    BySize,
    Indexed,
}

impl From<VariantArg> for Variant {
    fn from(variant: VariantArg) -> Self {
        match variant {
            VariantArg::Near => Self::Near,
            VariantArg::Near2018 => Self::Near2018,
            VariantArg::BySize => Self::BySize,
            VariantArg::Indexed => Self::Indexed,
        }
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(keep) = &args.keep {
        output_file::check_new(keep, args.force)?;
    }
    let options = AllocOptions {
        cases: chosen_or(&args.cases, &Case::ALL),
        variants: chosen_or(&args.variants, &Variant::ALL),
        bytes: args.size,
        groups: args.groups,
        writers: args.writers.map(usize::from),
        in_flight: args.in_flight.map(usize::from),
        files: args.files.map(|files| files as usize),
        header_writes: args.header_writes,
        spread: args.spread,
        extents: args.extents,
        memory: args.memory.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        scratch: args.scratch.clone(),
        keep: args.keep.clone(),
        on: args.on.clone(),
        data: args.data,
    };
    runner::run(&args.common, out, |run, found| alloc::run(&options, run, found))?;
    Ok(Outcome::Done)
}

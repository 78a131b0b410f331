//! `undercroft lab age`.

use super::runner;
use crate::format_options::FormatArgs;
use crate::report::Outcome;
use crate::value;
use anyhow::Result;
use clap::{ValueEnum, ValueHint};
use std::io::Write;
use std::sync::Arc;
use undercroft_block::stack::{Description, MirrorEvent};
use undercroft_image::pack::{EmptyOptions, make_empty};
use undercroft_lab::age::{FreeMap, age};
use undercroft_xfs::Volume;
use undercroft_xfs::format::Timestamp;
use undercroft_xfs::mkfs;
use uuid::Uuid;

/// Make the free space of a volume look as if it had been in use for years.
///
/// A file for each group, filler/group-N, takes the space that is not to be free; its holes are the
/// free space. The same options and seed make the same free space.
///
///   random        holes of 1 to --hole blocks between kept pieces of 1 to --kept blocks
///   pathological  --short holes that are a block too short for a request of --request blocks,
///                 and --long that will do at the far end of the group
///
/// Works on an existing volume that is not mounted and has no filler yet, or with --size on a new
/// one. Changes skip the journal: an interruption leaves a damaged volume.
///
/// For example: undercroft lab age --size 20G --agcount 16 --seed 7 aged.img; undercroft frag aged.img
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The image file or block device; or a device stacked on several.
    #[arg(value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    image: Description,

    /// The pattern of the free space.
    #[arg(long, value_name = "MAP", default_value = "random")]
    map: MapArg,

    /// Longest hole of the random map in blocks; without it, some 2,200 holes in each group.
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u32).range(1..))]
    hole: Option<u32>,

    /// Longest kept piece of the random map in blocks.
    #[arg(long, value_name = "BLOCKS", value_parser = clap::value_parser!(u32).range(1..))]
    kept: Option<u32>,

    /// Length of the requests that the pathological map is hard for, in blocks.
    #[arg(long, value_name = "BLOCKS", default_value_t = 8, value_parser = clap::value_parser!(u32).range(2..))]
    request: u32,

    /// Holes of the pathological map that are too short, in each group.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    short: u32,

    /// Holes of the pathological map that will do, in each group.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    long: u32,

    /// Seed of all lengths and of the order in which pieces are taken.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Make a new volume of this size first (such as 64K, 1.5G, 10MB).
    #[arg(long, value_name = "SIZE", value_parser = value::size)]
    size: Option<u64>,

    /// With --size, replace an image that exists.
    #[arg(long, requires = "size")]
    force: bool,

    /// Print a record, one JSON object, instead of a table.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    format: FormatArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MapArg {
    Random,
    Pathological,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if let Some(size) = args.size {
        make(args, size)?;
    }
    let note = |event: &MirrorEvent| eprintln!("note: {event}");
    let volume = Volume::open_bulk(args.image.open(false, Some(Arc::new(note)))?)?;
    let aged = age(&volume, &map(args, volume.geometry().ag_blocks), args.seed)?;
    mkfs::finish(&volume, true)?;
    runner::report(undercroft_lab::Outcome::Age(aged.outcome), args.seed, args.json, out)?;
    Ok(Outcome::Done)
}

/// Makes an empty volume whose identity is that of the seed.
fn make(args: &Args, size: u64) -> Result<()> {
    make_empty(&EmptyOptions {
        image: args.image.clone(),
        force: args.force,
        durable: false,
        volume: args.format.options(size, Uuid::from_u64_pair(args.seed, size))?,
        root_mode: 0o755,
        root_owner: (0, 0),
        time: Timestamp::default(),
    })?;
    Ok(())
}

fn map(args: &Args, group_blocks: u32) -> FreeMap {
    let Args { request, short, long, .. } = *args;
    match (args.map, FreeMap::random(group_blocks)) {
        (MapArg::Random, FreeMap::Random { hole, kept }) => {
            FreeMap::Random { hole: args.hole.unwrap_or(hole), kept: args.kept.unwrap_or(kept) }
        }
        _ => FreeMap::Pathological { request, short, long },
    }
}

//! `undercroft trim`.

use crate::image::{self, ImageArgs};
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::text;
use crate::value;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;
use undercroft_xfs::maintain::{self, Trimmed};

/// Give the free space of a volume back: a file gets holes there, a disk is told to discard it.
///
/// What removed files had stays in a file or on a disk until it is used again: an image of 100 MiB of
/// files may take a gigabyte. Only what is free for good is given back, whatever moment it is
/// interrupted at. Removed files cannot be undeleted afterwards.
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden), after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Leave shorter free extents as they are.
    #[arg(long, value_name = "BYTES", value_parser = value::size, default_value = "0")]
    minimum: u64,

    /// Print what was given back as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft rm -r root.img /var/log && undercroft trim root.img && du -h root.img";

/// What was given back, as JSON.
#[derive(Serialize)]
struct Report {
    extents: u64,
    bytes: u64,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let device = args.image.writable_device()?;
    let progress = Progress::new();
    let trimmed = maintain::trim(&device, args.minimum, &mut |done, total| {
        progress.show_bytes(done, total);
    });
    drop(progress);
    let Trimmed { extents, bytes } = trimmed.map_err(|error| args.image.explain(error.into()))?;
    if args.json {
        report::json_line(out, &Report { extents, bytes })?;
    } else {
        writeln!(out, "{}: {} in {extents} free extents", args.image.name(), text::bytes(bytes))?;
    }
    Ok(Outcome::Done)
}

//! `undercroft grow`.

use crate::image::{self, ImageArgs};
use crate::report::{self, Outcome};
use crate::{text, value};
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use undercroft_xfs::Volume;
use undercroft_xfs::maintain;

/// Make a volume larger: to the end of its device, or to a size. A file grows with it.
///
/// The last group becomes as long as the others, and new groups follow. Existing files stay where
/// they are. A crash at any point leaves the old volume or the larger one; the same command goes on.
/// A volume that has its size already, or would gain less than 64 blocks or 128 KiB behind full groups,
/// is left as it is. `undercroft shrink` makes a volume smaller.
///
/// A volume in a partition grows within the partition, one on several files within these: make those
/// larger first.
///
/// For example: undercroft grow --size 20G root.img
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// New size of the volume (such as 64K, 1.5G, 10MB). A rest behind full groups of less than 64
    /// blocks or 128 KiB is left out.
    #[arg(long, value_name = "SIZE", value_parser = value::size, conflicts_with = "groups")]
    size: Option<u64>,

    /// New number of groups, all of full length.
    #[arg(long, value_name = "N")]
    groups: Option<u32>,

    /// Print the sizes as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// Sizes before and after.
#[derive(Serialize)]
struct Report {
    block_size: usize,
    blocks_before: u64,
    blocks: u64,
    groups_before: u32,
    groups: u32,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (mut device, volume) = args.image.open_to_replace()?;
    let block_size = volume.geometry().block_size();
    let mut size = args.size.or_else(|| args.groups.map(|groups| size_of(&volume, groups)));
    if let Some(size) = &mut size {
        // Before the file is touched.
        *size = maintain::growth(&volume, *size)?.blocks.saturating_mul(block_size as u64);
        if device.capacity().to_bytes().unwrap_or(u64::MAX) < *size {
            // The next to open the file gets it; the volume is looked at again then.
            drop((volume, device));
            args.image.let_go();
            lengthen(&args.image, *size)?;
            device = args.image.writable_device()?;
        }
    }
    let maintain::Growth { blocks_before, blocks, groups_before, groups } =
        maintain::grow(&device, size)?;
    if args.json {
        let report = Report { block_size, blocks_before, blocks, groups_before, groups };
        report::json_line(out, &report)?;
    } else {
        let bytes = |blocks: u64| text::bytes(blocks.saturating_mul(block_size as u64));
        let (from, to) = (bytes(blocks_before), bytes(blocks));
        if blocks == blocks_before {
            writeln!(out, "nothing to gain: the volume has {to} in {groups} groups")?;
            return Ok(Outcome::Done);
        }
        writeln!(out, "grown from {from} in {groups_before} groups to {to} in {groups} groups")?;
    }
    Ok(Outcome::Done)
}

/// The size of a volume of `groups` groups.
fn size_of(volume: &Volume, groups: u32) -> u64 {
    let geometry = volume.geometry();
    // Less than 2^32 groups of at most 2^40 bytes: may be too much for a device, not for a number.
    (u64::from(groups) * u64::from(geometry.ag_blocks)).saturating_mul(geometry.block_size() as u64)
}

/// Makes the file that the volume is in long enough for one of `bytes` bytes.
fn lengthen(image: &ImageArgs, bytes: u64) -> Result<()> {
    let (Some(path), Some(start)) = (image.path(), image.start()) else {
        bail!("the device is too short for a volume of {bytes} bytes; make it larger first");
    };
    let shown = path.display();
    let file = File::options().write(true).open(path);
    let file = file.with_context(|| format!("cannot open {shown}"))?;
    if !file.metadata()?.is_file() {
        bail!("{shown} is a device, and too short for a volume of {bytes} bytes");
    }
    let end = start.checked_add(bytes).context("that is more than a file can have")?;
    file.set_len(end).with_context(|| format!("cannot make {shown} {end} bytes long"))?;
    Ok(())
}

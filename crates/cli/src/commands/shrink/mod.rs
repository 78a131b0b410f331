//! `undercroft shrink`.

mod report;

use crate::image::{self, ImageArgs};
use crate::progress::Progress;
use crate::report::{Outcome, json_line, note};
use crate::{text, value};
use anyhow::{Context, Result};
use report::{Report, Spread};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use undercroft_block::partition::Shortening;
use undercroft_block::{BlockDevice, Sector};
use undercroft_xfs::maintain::{self, ShrinkOptions, ShrinkTarget, Shrinkage};
use undercroft_xfs::{Error, Volume};

/// Make a volume smaller, in place: to a size, or to the smallest one. A file is cut behind it.
///
/// Allocation groups keep their length: whole groups go, and the last one that stays may be shorter.
/// At least two of several stay. What lies in what goes moves to what stays: contents of files,
/// inodes, and the journal. An inode that moves gets another number, as a number names a place, and
/// all its names follow; NFS handles and dump inventories do not. With --keep-inode-numbers nothing
/// is changed if one would move, and the message names some. --dry-run says what would happen.
///
/// An interruption loses nothing: the same command goes on. Between two writes of a superblock no
/// kernel mounts the volume until it has, or --abandon has given it up. `undercroft grow` makes the
/// volume as large as before.
///
/// A partition or device keeps its length: the message says how much of it the volume needs. With
/// --partition-table the entry of the partition is shortened, too.
///
/// `undercroft minimise` goes on until nothing is gained any more.
///
/// For example: undercroft shrink --size min --dry-run root.img
#[derive(clap::Args)]
#[command(mut_arg("no_replay", image::hidden))]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// New size of the volume at most (such as 800M, 1.5G), or `min` for the smallest.
    #[arg(long, value_name = "SIZE", value_parser = target, required_unless_present = "abandon")]
    size: Option<ShrinkTarget>,

    /// Give up a shrink that was interrupted: the groups that were to go are kept, and what moved
    /// stays where it is.
    #[arg(long, conflicts_with_all = ["size", "dry_run", "keep_inode_numbers", "json"])]
    abandon: bool,

    /// Make the partition, chosen by --partition, as short as the volume in the partition table, last
    /// of all: a primary one, or one of a GPT.
    #[arg(long, requires = "partition", conflicts_with_all = ["dry_run", "abandon"])]
    partition_table: bool,

    /// Give no inode another number: one in what would go is in the way.
    #[arg(long)]
    keep_inode_numbers: bool,

    /// Only say what would move, about how long that takes, what is in the way, and the smallest size.
    #[arg(long)]
    dry_run: bool,

    /// Look at all files before and afterwards, and say how spread they are, as `undercroft frag` does.
    #[arg(long, conflicts_with_all = ["dry_run", "abandon"])]
    frag: bool,

    /// Print the sizes as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

impl Args {
    fn options(&self) -> ShrinkOptions {
        // Required where the shrink is not given up.
        let target = self.size.unwrap_or(ShrinkTarget::Smallest);
        ShrinkOptions { target, keep_inode_numbers: self.keep_inode_numbers }
    }
}

/// Parses a size, or `min`.
fn target(text: &str) -> Result<ShrinkTarget, String> {
    if text == "min" {
        return Ok(ShrinkTarget::Smallest);
    }
    value::size(text).map(ShrinkTarget::Bytes)
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    if args.abandon {
        return abandon(args, out);
    }
    let report = if args.dry_run {
        plan(args)?
    } else {
        perform(&args.image, args.partition_table, args.frag, |device, progress| {
            maintain::shrink(device, args.options(), progress)
        })?
    };
    print(&report, args.json, out)?;
    Ok(if report.is_refused() { Outcome::Findings } else { Outcome::Done })
}

pub(super) fn print(report: &Report, json: bool, out: &mut dyn Write) -> Result<()> {
    if json { Ok(json_line(out, report)?) } else { report.print(out) }
}

fn abandon(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let device = args.image.writable_device()?;
    let found = maintain::abandon_shrink(&device)?;
    let volume = Volume::open(Arc::clone(&device))?;
    let in_bytes = |blocks: u64| blocks.saturating_mul(volume.geometry().block_size() as u64);
    let (bytes, freed) = (in_bytes(volume.geometry().blocks), in_bytes(found.freed_blocks));
    let (size, groups) = (text::bytes(bytes), volume.geometry().ag_count);
    let was_left = found.was_cut || freed > 0;
    let what = if was_left { "the shrink is given up" } else { "nothing of a shrink was left" };
    writeln!(out, "{what}: the volume has {size} in {groups} groups")?;
    if freed > 0 {
        eprintln!(
            "note: {} are free again, which a journal had taken that moved",
            text::bytes(freed)
        );
    }
    if device.capacity().to_bytes().is_some_and(|capacity| capacity > bytes) {
        note(format_args!("its device is longer; `undercroft grow` makes the volume as long"));
    }
    Ok(Outcome::Done)
}

fn plan(args: &Args) -> Result<Report> {
    let volume = args.image.open()?;
    let change = maintain::shrinkage(&volume, args.options())?;
    Ok(Report::new(&change, volume.geometry().block_size() as u64, false))
}

/// Makes a volume smaller, with progress, and cuts the file that it is in.
pub(super) fn perform(
    image: &ImageArgs,
    partition_table: bool,
    frag: bool,
    shrink: impl FnOnce(&Arc<dyn BlockDevice>, &mut dyn FnMut(u64, u64)) -> Result<Shrinkage, Error>,
) -> Result<Report> {
    let [disk, device] = image.writable_disk()?;
    // Before anything is written.
    let number = image.partition().filter(|_| partition_table);
    let entry = number.map(|number| Shortening::of(disk.as_ref(), number)).transpose()?;
    // A volume whose shrinking was interrupted may not be one that can be opened.
    let volume = Volume::open(Arc::clone(&device)).ok();
    if volume.as_ref().is_some_and(|volume| volume.recovery().is_some()) {
        note(format_args!("{} was not unmounted cleanly; its journal is replayed", image.name()));
    }
    let before = volume.filter(|_| frag).map(|volume| Spread::of(&volume)).transpose()?;
    let progress = Progress::new();
    let change = shrink(&device, &mut |done, total| progress.show_bytes(done, total))?;
    drop(progress);
    let volume = Volume::open(Arc::clone(&device))?;
    let block_size = volume.geometry().block_size() as u64;
    let report = Report::new(&change, block_size, true);
    let report = match before {
        Some(before) => report.with_spread(before, Spread::of(&volume)?),
        None => report,
    };
    drop(volume);
    let capacity = device.capacity().to_bytes().unwrap_or(u64::MAX);
    // The device is held until the file or the partition is cut.
    let bytes = change.blocks.saturating_mul(block_size);
    match number.zip(entry) {
        Some((number, entry)) => {
            entry.write(Sector::covering(bytes)).with_context(|| {
                format!("the volume has {bytes} bytes now, and its partition is as long as before")
            })?;
            note(format_args!("partition {number} has {bytes} bytes now"));
        }
        None => cut(image, capacity, bytes)?,
    }
    Ok(report)
}

/// Cuts the file that the volume is in, if it is one, behind the `bytes` bytes of the volume. Its device
/// has `capacity` bytes.
fn cut(image: &ImageArgs, capacity: u64, bytes: u64) -> Result<()> {
    let file = match (image.path(), image.start()) {
        (Some(path), Some(start)) => regular(path)?.zip(start.checked_add(bytes)),
        _ => None,
    };
    let Some((file, end)) = file else {
        let device = if image.partition().is_some() { "partition" } else { "device" };
        let free = capacity.saturating_sub(bytes);
        note(format_args!(
            "the volume needs the first {bytes} bytes of its {device}; the {free} bytes \
             behind may be cut"
        ));
        return Ok(());
    };
    let now = file.metadata()?.len();
    if image.start() != Some(0) {
        note(format_args!(
            "the volume ends at byte {end} of the image, which is as long as before"
        ));
    } else if now > end {
        file.set_len(end).with_context(|| format!("cannot cut the file at {end} bytes"))?;
    }
    Ok(())
}

/// The file at `path` for change; `None` if it is a device.
fn regular(path: &Path) -> Result<Option<File>> {
    let file = File::options().write(true).open(path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    Ok(Some(file).filter(|file| file.metadata().is_ok_and(|data| data.is_file())))
}

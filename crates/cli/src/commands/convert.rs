//! `undercroft convert`.

use crate::image::{FormatArgs, ImageArgs, Part};
use crate::output_file;
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::text;
use crate::value;
use anyhow::{Context, Result, bail};
use clap::{ValueEnum, ValueHint};
use serde::Serialize;
use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use undercroft_block::stack::Description;
use undercroft_block::{BlockDevice, SECTOR_SIZE, Sector, is_zero, read_buffer};
use undercroft_image::pack::to_qcow2;
use undercroft_xfs::Volume;
use undercroft_xfs::frag::for_each_free;
use undercroft_xfs::recovery::LogState;

/// Bytes that are read at a time.
const PIECE: u64 = 1 << 20;
/// Bytes that become a hole where they are all zeroes.
const HOLE: usize = 64 << 10;

/// Copy a disk into a new file: raw, with holes, or as qcow2.
///
/// What is read is all that an image can be: a qcow2, a stack, a network disk. It stays as it is.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The disk: an image file, a block device, a network disk, or a device stacked on several.
    #[arg(value_name = "IMAGE", value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    image: Description,

    /// The new file.
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath)]
    target: PathBuf,

    /// The format of the new file; by its name without this: qcow2 for a name that ends so, else raw.
    #[arg(long, value_name = "FORMAT")]
    to: Option<NewFormat>,

    /// Leave the free space of the only XFS volume out: it reads as zeroes in the copy.
    #[arg(long)]
    skip_free: bool,

    /// Replace a file that exists.
    #[arg(long)]
    force: bool,

    /// Print the lengths as JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    format: FormatArgs,
}

const EXAMPLES: &str = "\
Examples:
  undercroft convert --skip-free root.img root.qcow2
  undercroft convert root.qcow2 raw.img";

/// Formats that are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NewFormat {
    Raw,
    Qcow2,
}

/// What was copied, in bytes.
#[derive(Default, Serialize)]
pub(super) struct Report {
    pub(super) bytes: u64,
    /// What is not zeroes.
    pub(super) data_bytes: u64,
    /// Free space that was left out.
    skipped_bytes: u64,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let target = &args.target;
    output_file::check(target, args.force)?;
    let free = if args.skip_free { free_space(args)? } else { Vec::new() };
    let disk = ImageArgs::disk_of(args.image.clone()).with_format(args.format.clone()).device()?;
    let is_qcow2 = match args.to {
        Some(format) => format == NewFormat::Qcow2,
        None => target.extension().is_some_and(|end| end == "qcow2"),
    };
    let report = write(target, args.force, |new, directory| {
        if !is_qcow2 {
            return copy(&*disk, &free, new);
        }
        let cannot = || format!("cannot write {}", target.display());
        let raw = tempfile::tempfile_in(directory).with_context(cannot)?;
        let report = copy(&*disk, &free, &raw)?;
        to_qcow2(&raw, new, &mut |_| ()).with_context(cannot)?;
        Ok(report)
    })?;
    if args.json {
        report::json_line(out, &report)?;
    } else {
        let Report { bytes, data_bytes, .. } = report;
        let (bytes, data) = (text::bytes(bytes), text::bytes(data_bytes));
        writeln!(out, "{}: {bytes}, {data} of data", target.display())?;
    }
    Ok(Outcome::Done)
}

/// Copies a disk into a new file, with holes.
#[cfg(feature = "objects")]
pub(super) fn to_raw(disk: &dyn BlockDevice, target: &Path, force: bool) -> Result<Report> {
    write(target, force, |new, _| copy(disk, &[], new))
}

/// Makes a file that has its name when all is in it. `fill` gets the file and its directory.
fn write(
    target: &Path,
    force: bool,
    fill: impl FnOnce(&File, &Path) -> Result<Report>,
) -> Result<Report> {
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let cannot = || format!("cannot write {}", target.display());
    let new = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(directory)
        .with_context(cannot)?;
    let report = fill(new.as_file(), directory)?;
    let kept = if force { new.persist(target) } else { new.persist_noclobber(target) };
    kept.map_err(|error| error.error).with_context(cannot)?;
    Ok(report)
}

/// Copies what is not zeroes, and not in ranges that are free.
fn copy(disk: &dyn BlockDevice, free: &[Range<u64>], to: &File) -> Result<Report> {
    let bar = Progress::new();
    let bytes = disk.capacity().to_bytes().context("the disk has no end")?;
    if bytes == 0 {
        bail!("{} has no bytes of its own; name one of the disks", disk.name());
    }
    to.set_len(bytes)?;
    let mut report = Report { bytes, ..Report::default() };
    let mut start = 0;
    while start < bytes {
        let length = (bytes - start).min(PIECE);
        let next = free.partition_point(|range| range.end <= start);
        let skipped = free.get(next).filter(|range| range.start <= start);
        if let Some(range) = skipped.filter(|range| range.end >= start + length) {
            // Whole pieces are not even read.
            let pieces = (range.end - start) / PIECE * PIECE;
            let pieces = if pieces == 0 { length } else { pieces };
            report.skipped_bytes += pieces;
            start += pieces;
            bar.show_bytes(start, bytes);
            continue;
        }
        let mut piece = read_buffer(disk, Sector(start / SECTOR_SIZE), length as usize)?;
        for range in free[next..].iter().take_while(|range| range.start < start + length) {
            let (from, end) = (range.start.max(start), range.end.min(start + length));
            piece[(from - start) as usize..(end - start) as usize].fill(0);
            report.skipped_bytes += end - from;
        }
        for (at, part) in (start..).step_by(HOLE).zip(piece.chunks(HOLE)) {
            if !is_zero(part) {
                to.write_all_at(part, at)?;
                report.data_bytes += part.len() as u64;
            }
        }
        start += length;
        bar.show_bytes(start, bytes);
    }
    Ok(report)
}

/// The free space of the volume, in bytes of the disk.
fn free_space(args: &Args) -> Result<Vec<Range<u64>>> {
    let image = ImageArgs::part_of(args.image.clone(), Part::default());
    let image = image.with_format(args.format.clone());
    let device = image.device()?;
    let volume = Volume::open_unreplayed(device).map_err(|error| image.explain(error.into()))?;
    if volume.log_state()? != LogState::Clean {
        bail!(
            "{} was not unmounted cleanly: what is free is said by its journal; `undercroft replay` \
             first, or leave --skip-free out",
            args.image
        );
    }
    let first = image.first_byte().with_context(|| {
        format!("--skip-free is for a volume in one piece, and that of {} is not", args.image)
    })?;
    let mut free = Vec::new();
    for_each_free(&volume, |sector, sectors| {
        let start = first + sector.0 * SECTOR_SIZE;
        free.push(start..start + sectors * SECTOR_SIZE);
    })?;
    free.sort_unstable_by_key(|range| range.start);
    Ok(free)
}

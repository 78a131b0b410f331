//! `undercroft salvage`.

mod report;
mod rescue_map;

use super::build::build_found;
use super::extract::{Target, deliver};
use super::found::{FoundJson, print_found, print_paths};
use super::warnings::warn;
use crate::failure::Usage;
use crate::image::ImageArgs;
use crate::image::salvaged::{Found, takes};
use crate::report::{Outcome, json_line};
use crate::value;
use anyhow::{Context, Result, bail};
use clap::ValueHint;
use report::Report;
use rescue_map::RescueMap;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use undercroft_block::Sector;
use undercroft_block::stack::{Description, Gaps};
use undercroft_image::FoundSource;
use undercroft_image::unpack::{entries_to_directory, entries_to_tar};
use undercroft_source::Source;
use uuid::Uuid;

/// Copy everything that can be read from a damaged, overwritten, cut or re-formatted volume.
///
/// Nothing is written to the source. It is read once from its start to its end, and the pieces of the volume
/// are put together wherever they lie: neither a superblock, nor trees, nor the root directory is needed. So
/// the source can be a whole disk without its partition table as well.
/// Files come below their paths. Those whose way up to the root is lost go below lost+found, in directories
/// with the number of the last one known. A file of which parts are lost has holes there, and ".partial" behind
/// its name; one whose size is known to a block has ".unsized".
/// Sectors that cannot be read are skipped and counted; files with any of them have lost parts. What becomes
/// bad behind the scan is zeroes in the copy, and named. A disk with bad sectors is better copied by ddrescue
/// before.
/// Wherever a volume is read, salvage:SOURCE in its place is what would be copied: look first. What stands
/// there for the data stays on the source; names and attributes are in a temporary file (TMPDIR).
/// The exit status is 0 if all is whole that is known to have been there, else 1. Data have no checksums: what
/// was written over a file by others than this file system is not noticed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// A directory, empty or yet to be made, on another disk; or - for a tar stream.
    #[arg(required_unless_present_any = ["list", "to_image"], conflicts_with_all = ["list", "to_image"])]
    destination: Option<PathBuf>,

    /// Put the files on a new volume: an image file to be made, or a block device.
    #[arg(long, value_name = "NEW", value_parser = value::image(), value_hint = ValueHint::AnyPath,
        conflicts_with = "list")]
    to_image: Option<Description>,

    /// Only list what would be copied.
    #[arg(long)]
    list: bool,

    /// With --list: print paths alone, each with a byte of zero behind it, for `xargs -0`.
    #[arg(short = '0', long = "null", requires = "list", conflicts_with = "json")]
    null: bool,

    /// The volume with this UUID, where there are traces of several: an earlier one, for example, after mkfs.
    #[arg(long)]
    uuid: Option<Uuid>,

    /// The map that GNU ddrescue wrote with this copy of a disk: what it did not read is lost, whatever
    /// is in its place.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,

    /// Replace what is in the directory, or the image.
    #[arg(long)]
    force: bool,

    /// Print the report as JSON (to standard error when the archive goes to standard output).
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft salvage --list disk.img             what can be read
  undercroft salvage disk.img rescued            copy it to a directory
  undercroft salvage --map disk.map --list disk.img    a copy made by ddrescue
  undercroft salvage disk.img --to-image rescued.img
  undercroft ls -lR salvage:disk.img             look before it is copied
  undercroft build --exclude /var salvage:disk.img kept.img";

impl Args {
    /// Whether standard output gets an archive.
    pub(super) fn is_archive(&self) -> bool {
        self.destination.as_deref().is_some_and(Target::is_archive)
    }
}

/// A list as JSON.
#[derive(Serialize)]
struct List<'r> {
    report: &'r Report,
    files: Vec<FoundJson>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let Found { disk, salvaged, volumes } = search(args)?;
    let mut report = Report::new(&salvaged.report, &volumes);
    let files = &salvaged.files;
    if args.list {
        if args.json {
            let files = files.iter().map(FoundJson::new).collect();
            json_line(out, &List { report: &report, files })?;
        } else {
            for file in files.iter() {
                if args.null {
                    print_paths(file, out)?;
                } else {
                    print_found(file, Some(file.mtime), out)?;
                }
            }
            report.print(&mut std::io::stderr())?;
        }
        return Ok(outcome(&report));
    }
    if files.is_empty() {
        bail!("no file of the volume {} is left", salvaged.report.uuid);
    }
    let mut source = FoundSource::new(&disk, files, takes);
    if let Some(image) = &args.to_image {
        build_found(source, image, args.force, args.json, out)?;
        report.print(&mut std::io::stderr())?;
        return Ok(outcome(&report));
    }
    let Some(destination) = &args.destination else {
        bail!(Usage("name a destination, or --list".into()));
    };
    let to = Target { path: destination, replace: args.force };
    // The report says it better than the count of what was unpacked.
    let done = deliver(&to, false, &mut std::io::sink(), &mut |_, show| {
        if args.is_archive() {
            entries_to_tar(&mut source, &mut *out, show)
        } else {
            entries_to_directory(&mut source, to.path, to.replace, show)
        }
    })?;
    report.add_late(source.late_losses());
    warn(&source.warnings(), false);
    let mut standard_error = std::io::stderr();
    let told: &mut dyn Write = if args.is_archive() { &mut standard_error } else { out };
    if args.json {
        json_line(told, &report)?;
    } else {
        report.print(told)?;
    }
    Ok(if done == Outcome::Done { outcome(&report) } else { done })
}

/// Scans the image, but for what the map of its copy says is lost.
fn search(args: &Args) -> Result<Found> {
    let image = &args.image;
    let mut device = image.device()?;
    let mut lost = Vec::new();
    if let Some(path) = &args.map {
        let map = RescueMap::read(path)?;
        let start = image.first_byte().with_context(|| {
            format!("--map is of a disk, and {} has the volume in pieces", image.name())
        })?;
        lost = map.lost(start, device.capacity().0);
        let gaps = lost.iter().map(|range| Sector(range.start)..Sector(range.end));
        device = Arc::new(Gaps::new(device, gaps.collect()));
    }
    image.found(device, args.uuid, lost)
}

fn outcome(report: &Report) -> Outcome {
    if report.whole_volume { Outcome::Done } else { Outcome::Findings }
}

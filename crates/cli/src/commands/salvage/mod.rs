//! `undercroft salvage`.

mod report;
mod rescue_map;
mod search;

use super::extract::{Target, deliver};
use super::found::{FoundJson, print_found};
use crate::failure::Usage;
use crate::image::ImageArgs;
use crate::report::{Outcome, json_line};
use anyhow::{Result, bail};
use report::Report;
use search::{Found, search};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use undercroft_image::FoundSource;
use undercroft_image::unpack::{entries_to_directory, entries_to_tar};
use undercroft_recover::{FoundFile, State};
use uuid::Uuid;

/// Copy everything that can be read from a damaged, overwritten, cut or re-formatted volume.
///
/// Nothing is written to the source. It is read once from its start to its end, and the pieces of the volume
/// are put together wherever they lie: neither a superblock, nor trees, nor the root directory is needed. So
/// the source can be a whole disk without its partition table as well.
/// Files come below their paths. Those whose way up to the root is lost go below lost+found, in directories
/// with the number of the last one known. A file of which parts are lost has holes there, and ".partial" behind
/// its name; one whose size is known to a block has ".unsized".
/// Sectors that cannot be read are skipped and counted; files with any of them have lost parts. A disk with bad
/// sectors is better copied by ddrescue before.
/// The exit status is 0 if all is whole that is known to have been there, else 1. Data have no checksums: what
/// was written over a file by others than this file system is not noticed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// A directory, empty or yet to be made, on another disk; or - for a tar stream.
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    destination: Option<PathBuf>,

    /// Only list what would be copied.
    #[arg(long)]
    list: bool,

    /// The volume with this UUID, where there are traces of several: an earlier one, for example, after mkfs.
    #[arg(long)]
    uuid: Option<Uuid>,

    /// The map that GNU ddrescue wrote with this copy of a disk: what it did not read is lost, whatever
    /// is in its place.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,

    /// Replace what is in the directory.
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
  undercroft salvage disk.img - | undercroft build - rescued.img";

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
    let Found { disk, salvaged, volumes } = search(&args.image, args.uuid, args.map.as_deref())?;
    let report = Report::new(&salvaged.report, &volumes);
    let files = &salvaged.files;
    if args.list {
        if args.json {
            let files = files.iter().map(FoundJson::new).collect();
            json_line(out, &List { report: &report, files })?;
        } else {
            for file in files.iter() {
                print_found(file, Some(file.mtime), out)?;
            }
            report.print(&mut std::io::stderr())?;
        }
        return Ok(outcome(&report));
    }
    let Some(destination) = &args.destination else {
        bail!(Usage("name a destination, or --list".into()));
    };
    if files.is_empty() {
        bail!("no file of the volume {} is left", salvaged.report.uuid);
    }
    let to = Target { path: destination, replace: args.force };
    let takes = |file: &FoundFile| file.state != State::Lost;
    let mut source = FoundSource::new(&disk, files, takes);
    // The report says it better than the count of what was unpacked.
    let done = deliver(&to, false, &mut std::io::sink(), &mut |_, show| {
        if args.is_archive() {
            entries_to_tar(&mut source, &mut *out, show)
        } else {
            entries_to_directory(&mut source, to.path, to.replace, show)
        }
    })?;
    let mut standard_error = std::io::stderr();
    let told: &mut dyn Write = if args.is_archive() { &mut standard_error } else { out };
    if args.json {
        json_line(told, &report)?;
    } else {
        report.print(told)?;
    }
    Ok(if done == Outcome::Done { outcome(&report) } else { done })
}

fn outcome(report: &Report) -> Outcome {
    if report.whole_volume { Outcome::Done } else { Outcome::Findings }
}

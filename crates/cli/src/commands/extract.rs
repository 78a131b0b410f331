//! `undercroft extract`.

use crate::image::ImageArgs;
use crate::progress::Progress;
use crate::report::{self, Outcome};
use crate::text;
use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use undercroft_image::unpack::{Event, Subtree, Summary, UnpackError, to_directory, to_tar};

/// Extract a volume to a directory, or to standard output as a tar stream.
///
/// Works without root: owners, devices and attributes that need more rights are left out, and
/// counted at the end. The tar stream keeps everything in any case. Files that are larger than the
/// file system of the directory allows are named and left out; the exit status is 1 then.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// A directory, empty or yet to be made; or - for a tar stream on standard output.
    destination: PathBuf,

    /// Replace the contents of the directory.
    #[arg(long)]
    force: bool,

    /// Print the summary as JSON (to standard error when the archive goes to standard output).
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft extract root.img rootfs/
  undercroft extract --partition 2 disk.img - | tar xp --xattrs --xattrs-include='*' -C rootfs
  undercroft extract old.img - | undercroft build - new.img";

/// The summary as JSON.
#[derive(Serialize)]
struct Report {
    files: u64,
    directories: u64,
    symlinks: u64,
    specials: u64,
    hard_links: u64,
    bytes: u64,
    files_not_made: u64,
    owners_not_set: u64,
    attributes_not_set: u64,
    specials_not_made: u64,
}

impl Report {
    fn new(summary: &Summary) -> Self {
        Self {
            files: summary.files,
            directories: summary.directories,
            symlinks: summary.symlinks,
            specials: summary.specials,
            hard_links: summary.hard_links,
            bytes: summary.bytes,
            files_not_made: summary.failed,
            owners_not_set: summary.warnings.owners,
            attributes_not_set: summary.warnings.attributes,
            specials_not_made: summary.warnings.specials,
        }
    }
}

impl Args {
    /// Whether standard output gets an archive.
    pub(super) fn is_archive(&self) -> bool {
        Target::is_archive(&self.destination)
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let volume = args.image.open()?;
    let to = Target { path: &args.destination, replace: args.force };
    unpack(Subtree::from(&volume), &to, args.json, out)
}

/// The place that a tree is unpacked to.
pub(super) struct Target<'p> {
    /// A directory, or - for a tar stream on standard output.
    pub(super) path: &'p Path,
    /// Replace the contents of the directory.
    pub(super) replace: bool,
}

impl Target<'_> {
    pub(super) fn is_archive(path: &Path) -> bool {
        path.as_os_str() == "-"
    }
}

/// Unpacks a tree, and prints what was done.
pub(super) fn unpack(
    tree: Subtree<'_>,
    to: &Target<'_>,
    json: bool,
    out: &mut dyn Write,
) -> Result<Outcome> {
    deliver(to, json, out, &mut |out, show| {
        if Target::is_archive(to.path) {
            to_tar(tree, out, show)
        } else {
            to_directory(tree, to.path, to.replace, show)
        }
    })
}

/// Unpacks to standard output or elsewhere, and tells how far it is.
type Unpack<'u> =
    dyn FnMut(&mut dyn Write, &mut dyn FnMut(Event<'_>)) -> Result<Summary, UnpackError> + 'u;

/// Runs `unpack` with a progress bar, and prints what was done.
pub(super) fn deliver(
    to: &Target<'_>,
    json: bool,
    out: &mut dyn Write,
    unpack: &mut Unpack<'_>,
) -> Result<Outcome> {
    let archive = Target::is_archive(to.path);
    let bar = Progress::new();
    let mut show = |event: Event<'_>| match event {
        Event::Progress(done) => bar.show(done.entries, done.bytes, None),
        Event::Failed(error) => {
            let error = anyhow!("{error}");
            bar.say(&report::failure_line(&error, json));
        }
    };
    let unpacked = unpack(out, &mut show);
    drop(bar);
    let summary = unpacked?;
    let mut standard_error = std::io::stderr();
    let out = if archive { &mut standard_error } else { out };
    if json {
        report::json_line(out, &Report::new(&summary))?;
    } else if !archive {
        let others = summary.symlinks + summary.specials + summary.hard_links;
        writeln!(
            out,
            "{} files, {} directories, {others} others, {} of data",
            summary.files,
            summary.directories,
            text::bytes(summary.bytes),
        )?;
    }
    warn(&summary);
    match summary.failed {
        0 => Ok(Outcome::Done),
        1 => bail!("one file was not extracted"),
        count => bail!("{count} files were not extracted"),
    }
}

fn warn(summary: &Summary) {
    let warnings = &summary.warnings;
    for (count, what) in [
        (warnings.owners, "owners could not be set (root may)"),
        (warnings.attributes, "extended attributes could not be set"),
        (warnings.specials, "special files could not be made"),
    ] {
        if count > 0 {
            report::note(format_args!("{count} {what}"));
        }
    }
}

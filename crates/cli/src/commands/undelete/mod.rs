//! `undercroft undelete`.

mod in_place;

use super::build::build_found;
use super::deleted::{FilterArgs, Found, Selection, search};
use super::extract::{Target, deliver};
use super::warnings::warn;
use crate::failure::Usage;
use crate::image::ImageArgs;
use crate::report::{self, Outcome};
use crate::value;
use anyhow::{Result, bail};
use clap::ValueHint;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use undercroft_block::stack::Description;
use undercroft_image::FoundSource;
use undercroft_image::unpack::{entries_to_directory, entries_to_tar};
use undercroft_recover::{FoundFile, State};
use undercroft_source::Source;

/// Get removed files back: copy them out of a volume, or put them back into it.
///
/// Nothing is written to the volume without --in-place; the destination must be elsewhere. Each file comes below
/// the path that it had, with its owner, mode, time of modification, attributes, links and holes as far as they
/// are known. Files of which something is lost are left out, unless --partial asks for them: they have holes
/// where bytes are lost, and ".partial" behind their names; ".unsized" where the size is not known, ".likely" if
/// they are likely whole. Files whose directory is not known go below lost+found.
///
/// With --in-place whole files get their names back in the volume, through its journal. Their data stays where
/// it is and is not copied; so a file is refused if one of its blocks is in use. Directories that are gone are
/// made again. Where a name exists again, the file gets a number behind it. Nothing that is written takes
/// the place of what other removed files left. If the power fails, each file is either back or can be
/// put back by the same command, which leaves alone what is back.
/// Copy out first what must not be lost: a disk that fails does so while it is written.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Files, or directories with all that was in them, as `undercroft deleted` shows their paths; and last the
    /// destination: a directory, empty or yet to be made, or - for a tar stream. With --in-place and --to-image
    /// there is no destination.
    #[arg(required_unless_present_any = ["in_place", "to_image"], value_name = "PATH... DEST")]
    paths: Vec<OsString>,

    /// All removed files.
    #[arg(long)]
    all: bool,

    /// Put the files back into the volume, in the blocks that they had.
    #[arg(long, conflicts_with_all = ["to_image", "partial", "force", "no_replay"])]
    in_place: bool,

    /// Put the files on a new volume: an image file to be made, or a block device.
    #[arg(long, value_name = "NEW", value_parser = value::image(), value_hint = ValueHint::AnyPath)]
    to_image: Option<Description>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Take files that are likely whole, of which parts are lost, or whose size is not known, as well.
    #[arg(long)]
    partial: bool,

    /// Replace what is in the directory, or the image.
    #[arg(long)]
    force: bool,

    /// Print the summary as JSON (to standard error when the archive goes to standard output).
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  undercroft undelete disk.img /home/ann rescued        what was in a directory
  undercroft undelete disk.img --all --since @1764410000 rescued
  undercroft undelete disk.img --all - | tar tv
  undercroft undelete disk.img --all --to-image rescued.img
  undercroft undelete --in-place disk.img /home/ann     back to where it was
  undercroft undelete --in-place disk.img --all --since @1764410000";

impl Args {
    /// Whether standard output gets an archive.
    pub(super) fn is_archive(&self) -> bool {
        self.has_destination()
            && self.paths.last().is_some_and(|path| Target::is_archive(path.as_ref()))
    }

    /// Whether the last path is a destination.
    const fn has_destination(&self) -> bool {
        !self.in_place && self.to_image.is_none()
    }

    /// The paths of files, and the destination if there is one.
    fn parts(&self) -> Result<(&[OsString], Option<&Path>)> {
        let (paths, destination) = if self.has_destination() {
            let Some((destination, paths)) = self.paths.split_last() else {
                bail!(Usage("which destination?".into()));
            };
            (paths, Some(Path::new(destination)))
        } else {
            (&self.paths[..], None)
        };
        if paths.is_empty() != self.all {
            let and = if destination.is_some() { " and a destination" } else { "" };
            bail!(Usage(format!("name files{and}, or --all{and}")));
        }
        Ok((paths, destination))
    }
}

/// Which files are taken.
struct Choice<'a> {
    selection: Selection<'a>,
    /// Those of which something is lost as well.
    partial: bool,
}

impl Choice<'_> {
    fn wants(&self, file: &FoundFile) -> bool {
        self.selection.takes(file) && file.state != State::Lost
    }

    fn takes(&self, file: &FoundFile) -> bool {
        self.wants(file) && (self.partial || is_sound(file))
    }
}

fn is_sound(file: &FoundFile) -> bool {
    matches!(file.state, State::Whole | State::Shared)
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let (paths, destination) = args.parts()?;
    let selection = args.filter.selection(paths.iter().map(OsString::as_os_str))?;
    let choice = Choice { selection, partial: args.partial };
    if args.in_place {
        return in_place::run(args, &choice, out);
    }
    let found = search(&args.image)?;
    expect_any(&found, |file| choice.takes(file))?;
    let Found { disk, removed } = &found;
    let mut source = FoundSource::new(disk, &removed.files, |file| choice.takes(file));
    let done = match (destination, &args.to_image) {
        (_, Some(image)) => build_found(source, image, args.force, args.json, out),
        (Some(path), None) => copy(args, path, &mut source, out),
        (None, None) => bail!(Usage("which destination?".into())),
    };
    let left_out =
        removed.files.iter().filter(|file| choice.wants(file) && !is_sound(file)).count();
    if left_out > 0 && !args.partial {
        report::note(format_args!(
            "{left_out} files were left out that are likely whole, of which parts are lost, or whose size \
             is not known; --partial takes them"
        ));
    }
    done
}

/// Copies the files to a directory or an archive.
fn copy(
    args: &Args,
    path: &Path,
    source: &mut FoundSource,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let to = Target { path, replace: args.force };
    let done = deliver(&to, args.json, out, &mut |out, show| {
        if Target::is_archive(path) {
            entries_to_tar(source, out, show)
        } else {
            entries_to_directory(source, path, args.force, show)
        }
    });
    warn(&source.warnings(), false);
    match done? {
        Outcome::Done if source.late_losses().bytes > 0 => Ok(Outcome::Findings),
        done => Ok(done),
    }
}

/// Fails if no file is taken.
fn expect_any(found: &Found, takes: impl Fn(&FoundFile) -> bool) -> Result<()> {
    if !found.removed.files.iter().any(takes) {
        bail!("no such file can be got back; `undercroft deleted` lists those that are known");
    }
    Ok(())
}

//! `undercroft undelete`.

use super::deleted::{FilterArgs, Found, search};
use super::extract::{Target, deliver};
use crate::failure::Usage;
use crate::image::ImageArgs;
use crate::report::{self, Outcome};
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use undercroft_image::FoundSource;
use undercroft_image::unpack::{entries_to_directory, entries_to_tar};
use undercroft_recover::{FoundFile, State};

/// Copy removed files out of a volume.
///
/// Nothing is written to the volume; the destination must be elsewhere. Each file comes below the path that it
/// had, with its owner, mode, time of modification, attributes, links and holes as far as they are known.
/// Files of which something is lost are left out, unless --partial asks for them: they have holes where
/// bytes are lost, and ".partial" behind their names; ".unsized" where the size is not known.
/// Files whose directory is not known go below lost+found.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Files, or directories with all that was in them, as `undercroft deleted` shows their paths; and last the
    /// destination: a directory, empty or yet to be made, or - for a tar stream.
    #[arg(required = true, value_name = "PATH... DEST")]
    paths: Vec<OsString>,

    /// All removed files.
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    filter: FilterArgs,

    /// Take files of which parts are lost, or whose size is not known, as well.
    #[arg(long)]
    partial: bool,

    /// Replace what is in the directory.
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
  undercroft undelete disk.img --all - | undercroft build - rescued.img";

impl Args {
    /// Whether standard output gets an archive.
    pub(super) fn is_archive(&self) -> bool {
        self.destination().is_some_and(|path| Target::is_archive(path.as_ref()))
    }

    fn destination(&self) -> Option<&OsString> {
        self.paths.last()
    }
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let Some((destination, paths)) = args.paths.split_last() else {
        bail!(Usage("which destination?".into()));
    };
    if paths.is_empty() != args.all {
        let what = "name files and a destination, or --all and a destination";
        bail!(Usage(what.into()));
    }
    let Found { disk, removed } = search(&args.image)?;
    let selection = args.filter.selection(paths.iter().map(OsString::as_os_str))?;
    let is_sound = |file: &FoundFile| matches!(file.state, State::Whole | State::Shared);
    let is_left = |file: &FoundFile| file.state != State::Lost;
    let wanted = |file: &FoundFile| selection.takes(file) && is_left(file);
    let left_out = removed.files.iter().filter(|file| wanted(file) && !is_sound(file)).count();
    let takes = |file: &FoundFile| wanted(file) && (args.partial || is_sound(file));
    if !removed.files.iter().any(takes) {
        bail!("no such file can be got back; `undercroft deleted` lists those that are known");
    }
    let mut source = FoundSource::new(&disk, &removed.files, takes);
    let destination = PathBuf::from(destination);
    let to = Target { path: &destination, replace: args.force };
    let done = deliver(&to, args.json, out, &mut |out, show| {
        if Target::is_archive(to.path) {
            entries_to_tar(&mut source, out, show)
        } else {
            entries_to_directory(&mut source, to.path, to.replace, show)
        }
    });
    if left_out > 0 && !args.partial {
        report::note(format_args!(
            "{left_out} files were left out of which parts are lost or the size is not known; \
             --partial takes them"
        ));
    }
    done
}

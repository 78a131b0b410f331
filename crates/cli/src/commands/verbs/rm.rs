//! `undercroft rm`.

use super::Verb;
use crate::report::{self, Outcome};
use crate::session::Session;
use crate::text;
use anyhow::{Context, Result, bail};
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::{ErrorKind, FileSystem, Metadata};
use undercroft_xfs::ops::{Wiping, path_text};

/// Remove files, and with -r directories with their contents.
///
/// A file is removed with its last name; of a symbolic link, the link. A directory tree is removed from its leaves: if the
/// command is interrupted, the rest is still there, whole.
///
/// A removed file leaves its data, its name and where its data is, until the space is used again: that is what
/// `undercroft undelete` finds. With --wipe all of that is overwritten: blocks of data, attributes and maps
/// with zeros, as far as no clone shares them; names in the directory; the inode. What is left even then:
/// older copies of inodes, names and directories in the journal, until it has gone round; blocks that the
/// files had before and have given back; and on flash and thin disks whatever the device keeps. If the command
/// is interrupted, files that were removed may not be overwritten yet.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// Remove directories and their contents.
    #[arg(short, long)]
    recursive: bool,

    /// Remove empty directories.
    #[arg(short, long)]
    dir: bool,

    /// Paths that do not exist are no error.
    #[arg(short, long)]
    force: bool,

    /// Overwrite what the files would leave, so that they cannot be got back.
    #[arg(long)]
    wipe: bool,

    /// Print one JSON object for each path that was removed.
    #[arg(long)]
    json: bool,
}

/// A path that was removed, as JSON.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    path: text::Name,
    inode: u64,
    kind: &'static str,
}

const EXAMPLES: &str = "\
Examples:
  undercroft rm root.img /etc/fstab
  undercroft rm -r root.img /var/log
  undercroft rm -r --wipe root.img /etc/ssh";

impl Verb for Args {
    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let mut wiping = self.wipe.then(|| Wiping::new(session.volume));
        let paths = session.matching(&self.path)?;
        let removed = paths.iter().try_for_each(|path| {
            let found = match session.fs.symlink_metadata(path) {
                Err(error) if self.force && error.kind() == ErrorKind::NotFound => return Ok(()),
                found => found?,
            };
            self.remove(session, path, &found, wiping.as_mut())?;
            self.tell(path, &found, out)
        });
        // Those before an error are removed.
        let wiped = wiping.map_or(Ok(()), Wiping::finish);
        removed?;
        wiped?;
        Ok(Outcome::Done)
    }

    fn json(&self) -> bool {
        self.json
    }
}

impl Args {
    fn tell(&self, path: &OsStr, found: &Metadata, out: &mut dyn Write) -> Result<()> {
        if self.json {
            let (path, kind) = (text::Name::new(path.as_bytes()), text::kind(found.kind));
            report::json_line(out, &Line { path, inode: found.number.0, kind })?;
        }
        Ok(())
    }

    fn remove(
        &self,
        session: &Session<'_>,
        path: &OsStr,
        found: &Metadata,
        wiping: Option<&mut Wiping<'_>>,
    ) -> Result<()> {
        let fs = &session.fs;
        self.check(fs, path, found)?;
        if let Some(wiping) = wiping {
            let place = fs.place(path)?;
            let (parent, now) = (place.directory().number(), session.now());
            let done = if self.recursive {
                wiping.remove_all(parent, place.name(), now)
            } else {
                wiping.remove(parent, place.name(), now)
            };
            return done.with_context(|| path_text(path.as_bytes()));
        }
        if !found.is_dir() {
            return Ok(fs.remove_file(path)?);
        }
        if self.recursive {
            return Ok(fs.remove_dir_all(path)?);
        }
        Ok(fs.remove_dir(path)?)
    }

    /// Refuses a directory that is not to be removed.
    fn check(&self, fs: &FileSystem, path: &OsStr, found: &Metadata) -> Result<()> {
        if !found.is_dir() {
            return Ok(());
        }
        if found.number == fs.root() {
            bail!("{}: the root directory cannot be removed", path_text(path.as_bytes()));
        }
        if !self.recursive && !self.dir {
            let path = path_text(path.as_bytes());
            bail!("{path}: is a directory; use -r to remove it and all that is in it");
        }
        Ok(())
    }
}

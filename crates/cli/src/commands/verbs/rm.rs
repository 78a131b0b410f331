//! `undercroft rm`.

use super::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::{ErrorKind, FileSystem, Metadata};
use undercroft_xfs::ops::path_text;

/// Remove files, and with -r directories with their contents.
///
/// A file is removed with its last name; of a symbolic link, the link. A directory tree is removed from its leaves: if the
/// command is interrupted, the rest is still there, whole.
///
/// For example: undercroft rm --recursive root.img /var/log
#[derive(clap::Args)]
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
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        for path in &session.matching(&self.path)? {
            match session.fs.symlink_metadata(path) {
                Err(error) if self.force && error.kind() == ErrorKind::NotFound => {}
                found => self.remove(&session.fs, path, &found?)?,
            }
        }
        Ok(Outcome::Done)
    }
}

impl Args {
    fn remove(&self, fs: &FileSystem, path: &OsStr, found: &Metadata) -> Result<()> {
        if !found.is_dir() {
            return Ok(fs.remove_file(path)?);
        }
        if found.number == fs.root() {
            bail!("{}: the root directory cannot be removed", path_text(path.as_bytes()));
        }
        if !self.recursive && !self.dir {
            let path = path_text(path.as_bytes());
            bail!("{path}: is a directory; use -r to remove it and all that is in it");
        }
        if self.recursive {
            return Ok(fs.remove_dir_all(path)?);
        }
        Ok(fs.remove_dir(path)?)
    }
}

//! `undercroft rm`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::FileSystem;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::path_text;

/// Remove files, and with -r directories with their contents.
///
/// A file is removed with its last name. A directory tree is removed from its leaves: if the
/// command is interrupted, the rest is still there, whole.
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
        for path in &self.path {
            match session.find_if_there(path)? {
                None if self.force => {}
                _ => self.remove(session, path)?,
            }
        }
        Ok(Outcome::Done)
    }
}

impl Args {
    fn remove(&self, session: &Session<'_>, path: &OsStr) -> Result<()> {
        let number = session.find(path)?;
        if session.kind(number)? != FileType::Directory {
            return remove_one(session, path, false);
        }
        if number == session.volume.geometry().root_inode {
            bail!("{}: the root directory cannot be removed", path_text(path.as_bytes()));
        }
        if !self.recursive && !self.dir {
            let path = path_text(path.as_bytes());
            bail!("{path}: is a directory; use -r to remove it and all that is in it");
        }
        if self.recursive {
            return Ok(session.fs.remove_dir_all(path)?);
        }
        remove_one(session, path, true)
    }
}

fn remove_one(session: &Session<'_>, path: &OsStr, directory: bool) -> Result<()> {
    let kind = if directory { FileType::Directory } else { FileType::Regular };
    let place = session.place_for(path, kind)?;
    let remove = if directory { FileSystem::rmdir } else { FileSystem::unlink };
    let done = remove(&session.fs, place.parent, place.name);
    done.map(|_| ()).map_err(|error| renamed(error, path).into())
}

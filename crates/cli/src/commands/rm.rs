//! `undercroft rm`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use anyhow::{Result, bail};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, path_text};

/// Remove files, and with -r directories with all that is in them.
///
/// A file goes with its last name. A directory tree goes from its leaves: what was not reached when
/// the command is interrupted is still there, whole.
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
        if !self.recursive {
            return remove_one(session, path, true);
        }
        let mut directories = Vec::new();
        let mut waiting = vec![(path.to_owned(), number)];
        while let Some((path, number)) = waiting.pop() {
            for (name, child) in session.names(number)? {
                let bytes = [path.as_bytes(), b"/", &name].concat();
                let path = OsString::from_vec(bytes);
                if session.kind(child)? == FileType::Directory {
                    waiting.push((path, child));
                } else {
                    remove_one(session, &path, false)?;
                }
            }
            directories.push(path);
        }
        // Each directory stands behind the one it is in.
        directories.iter().rev().try_for_each(|path| remove_one(session, path, true))
    }
}

fn remove_one(session: &Session<'_>, path: &OsStr, directory: bool) -> Result<()> {
    let place = session.place(path)?;
    let remove = if directory { ops::rmdir } else { ops::unlink };
    let done = remove(session.volume, place.parent, place.name, session.now());
    done.map(|_| ()).map_err(|error| renamed(error, path).into())
}

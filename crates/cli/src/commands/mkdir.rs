//! `undercroft mkdir`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use crate::value;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, ErrorKind};

/// Create directories.
///
/// A directory takes over what the one above it hands down: its group if that has the set-group-id
/// bit, project, flags, and the default access list.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// Create the directories above as well, and accept those that exist.
    #[arg(short, long)]
    parents: bool,

    /// Permission bits in octal.
    #[arg(short, long, value_name = "MODE", default_value = "755", value_parser = value::mode)]
    mode: u16,

    /// Owner and group, as numbers.
    #[arg(long, value_name = "UID:GID", default_value = "0:0", value_parser = value::owner)]
    owner: (u32, u32),
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        for path in &self.path {
            if self.parents {
                self.make_all(session, path)?;
            } else {
                let new = session.new_inode(FileType::Directory, self.mode, self.owner);
                session.make(path, &new)?;
            }
        }
        Ok(Outcome::Done)
    }
}

impl Args {
    /// Makes what is missing of a path, from one directory to the next: a long path is not looked
    /// through again for each.
    fn make_all(&self, session: &Session<'_>, path: &OsStr) -> Result<()> {
        let path = path.as_bytes();
        let last = path.len() - path.iter().rev().take_while(|byte| **byte == b'/').count();
        let mut at = session.volume.geometry().root_inode;
        let mut start = 0;
        while start < last {
            let end = path[start..last].iter().position(|byte| *byte == b'/');
            let end = end.map_or(last, |len| start + len);
            let name = &path[start..end];
            start = end + 1;
            let so_far = OsStr::from_bytes(&path[..end]);
            at = match name {
                b"" | b"." => at,
                b".." => session.find(so_far)?,
                name => self.step(session, at, name, so_far, end == last)?,
            };
        }
        Ok(())
    }

    /// The directory `name` in `parent`, which is made if it is missing.
    fn step(
        &self,
        session: &Session<'_>,
        parent: InodeNumber,
        name: &[u8],
        path: &OsStr,
        is_last: bool,
    ) -> Result<InodeNumber> {
        let directory = session.volume.inode(parent)?;
        let found = ops::lookup_in_use(session.volume, &directory.read(), name);
        let Some(found) = found.map_err(|error| renamed(error, path))? else {
            // Those on the way are for everybody to pass through.
            let mode = if is_last { self.mode } else { 0o755 };
            let new = session.new_inode(FileType::Directory, mode, self.owner);
            let made = ops::make(session.volume, parent, name, &new);
            return Ok(made.map_err(|error| renamed(error, path))?);
        };
        if session.kind(found)? != FileType::Directory {
            return Err(not_a_directory(path).into());
        }
        Ok(found)
    }
}

fn not_a_directory(path: &OsStr) -> Error {
    let path = ops::path_text(path.as_bytes());
    Error::WrongKind { path, what: "not a directory", kind: ErrorKind::NotDirectory }
}

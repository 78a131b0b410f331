//! `undercroft mkdir`.

use super::verb::Verb;
use crate::owner::NewOwner;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use crate::value;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, ErrorKind};

/// Create directories.
///
/// A directory inherits from the one above it: its group if that has the set-group-id bit, its
/// project, flags, and default access list.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// Create the directories above as well, and accept existing ones.
    #[arg(short, long)]
    parents: bool,

    /// Permission bits in octal.
    #[arg(short, long, value_name = "MODE", default_value = "755", value_parser = value::mode)]
    mode: u16,

    /// Owner and group by name or number, as `chown` takes them; a part left out is 0.
    #[arg(long, value_name = "USER:GROUP")]
    owner: Option<NewOwner>,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let owner = NewOwner::of_new(self.owner.as_ref(), session, (0, 0))?;
        for path in &self.path {
            if self.parents {
                self.make_all(session, owner, path)?;
            } else {
                let new = session.new_inode(FileType::Directory, self.mode, owner);
                session.make(path, &new)?;
            }
        }
        Ok(Outcome::Done)
    }
}

impl Args {
    /// Makes the missing directories of a path, from one to the next: a long path is not looked
    /// through again for each.
    fn make_all(&self, session: &Session<'_>, owner: (u32, u32), path: &OsStr) -> Result<()> {
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
            // Directories on the way can be passed through by all users.
            let mode = if end == last { self.mode } else { 0o755 };
            let new = session.new_inode(FileType::Directory, mode, owner);
            at = match name {
                b"" | b"." => at,
                b".." => session.find(so_far)?,
                name => step(session, at, name, so_far, &new)?,
            };
        }
        Ok(())
    }
}

/// The directory `name` in `parent`, which is made if it is missing.
fn step(
    session: &Session<'_>,
    parent: InodeNumber,
    name: &[u8],
    path: &OsStr,
    new: &NewInode<'_>,
) -> Result<InodeNumber> {
    let directory = session.volume.inode(parent)?;
    let found = ops::lookup_in_use(session.volume, &directory.read(), name);
    let Some(found) = found.map_err(|error| renamed(error, path))? else {
        let made = ops::make(session.volume, parent, name, new);
        return Ok(made.map_err(|error| renamed(error, path))?);
    };
    if session.kind(found)? != FileType::Directory {
        return Err(not_a_directory(path).into());
    }
    Ok(found)
}

fn not_a_directory(path: &OsStr) -> Error {
    let path = ops::path_text(path.as_bytes());
    Error::WrongKind { path, what: "not a directory", kind: ErrorKind::NotDirectory }
}

//! `undercroft ln`.

use super::verb::Verb;
use crate::failure::Usage;
use crate::owner::NewOwner;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, NewInode};

/// Give a file another name, or with -s create a symbolic link.
///
/// The target of a symbolic link is stored as it is written.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file that gets another name; with -s, the target of the link.
    target: OsString,

    /// The new path, or a directory to put the name into.
    path: OsString,

    /// Create a symbolic link.
    #[arg(short, long)]
    symbolic: bool,

    /// Owner and group of a symbolic link by name or number, as `chown` takes them; a part left out
    /// is 0.
    #[arg(long, value_name = "USER:GROUP", requires = "symbolic")]
    owner: Option<NewOwner>,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        if self.target.is_empty() {
            bail!(Usage("a target of 0 bytes leads nowhere: name one".into()));
        }
        let path = session.destination(&self.path, &self.target)?;
        if self.symbolic {
            let owner = NewOwner::of_new(self.owner.as_ref(), session, (0, 0))?;
            let new = session.new_inode(FileType::Symlink, 0o777, owner);
            session.make(&path, &NewInode { target: self.target.as_bytes(), ..new })?;
            return Ok(Outcome::Done);
        }
        let number = session.find(&self.target)?;
        let place = session.place_for(&path, FileType::Regular)?;
        let about = if session.kind(number)? == FileType::Directory { &self.target } else { &path };
        ops::link(session.volume, number, place.parent, place.name, session.now())
            .map_err(|error| renamed(error, about))?;
        Ok(Outcome::Done)
    }
}

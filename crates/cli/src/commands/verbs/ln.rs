//! `undercroft ln`.

use super::Verb;
use crate::failure::Usage;
use crate::owner::NewOwner;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::{FileType, Owner};

/// Give a file another name, or with -s create a symbolic link.
///
/// The target of a symbolic link is stored as it is written. A symbolic link that gets another name
/// gets it itself.
///
/// For example: undercroft ln --symbolic root.img ../etc/fstab /home/fstab
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
        if !self.symbolic {
            session.fs.hard_link(&self.target, &path)?;
            return Ok(Outcome::Done);
        }
        let owner = NewOwner::of_new(self.owner.as_ref(), session, Owner::default())?;
        let place = session.fs.place(&path)?;
        place.expect_kind(FileType::Symlink)?;
        let (directory, target) = (place.directory().number(), self.target.as_bytes());
        let made = session.fs.nodes().symlink(directory, place.name(), target, owner);
        made.map_err(|error| place.failed(error))?;
        Ok(Outcome::Done)
    }
}

//! `undercroft chown`.

use super::verb::Verb;
use crate::owner::NewOwner;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::ops::{self, MetadataChange};

/// Set the owner and group of files.
///
/// Names are those in /etc/passwd and /etc/group of the volume; any other word is a number. As on
/// Linux, a file that gets another owner loses its setuid bit, its setgid bit if its group may
/// execute it, and its capabilities. Symbolic links are not followed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// USER:GROUP, or USER or :GROUP alone, by name or number; USER: for the group of the user.
    owner: NewOwner,

    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// The contents of directories as well.
    #[arg(short = 'R', long)]
    recursive: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let (uid, gid) = self.owner.resolve(session)?;
        let change = MetadataChange { uid, gid, ..MetadataChange::default() };
        for path in &self.path {
            session.walk(path, self.recursive, &mut |path, number| {
                ops::change_metadata(session.volume, number, &change, session.now())
                    .map_err(|error| renamed(error, OsStr::from_bytes(path)).into())
            })?;
        }
        Ok(Outcome::Done)
    }
}

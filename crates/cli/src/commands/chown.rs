//! `undercroft chown`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use crate::value;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::ops::{self, MetadataChange};

/// Set the owner and group of files, as numbers.
///
/// As on Linux, a file that changes hands loses its setuid bit, its setgid bit if its group may
/// execute it, and its capabilities. Symbolic links are not followed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// UID:GID, or UID or :GID alone.
    #[arg(value_parser = value::owner_or_group)]
    owner: (Option<u32>, Option<u32>),

    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// All that is in directories as well.
    #[arg(short = 'R', long)]
    recursive: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let (uid, gid) = self.owner;
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

//! `undercroft chmod`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use crate::value;
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, MetadataChange};

/// Set the permission bits of files.
///
/// An access list follows: its mask, or else the entry of the group, becomes the bits of the group.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Up to four octal digits: setuid 4, setgid 2, sticky 1; then owner, group, others.
    #[arg(value_parser = value::mode)]
    mode: u16,

    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,

    /// All that is in directories as well; symbolic links are passed by.
    #[arg(short = 'R', long)]
    recursive: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let change = MetadataChange { mode: Some(self.mode), ..MetadataChange::default() };
        for path in &self.path {
            session.walk(path, self.recursive, &mut |path, number| {
                if self.recursive && session.kind(number)? == FileType::Symlink {
                    return Ok(());
                }
                ops::change_metadata(session.volume, number, &change, session.now())
                    .map_err(|error| renamed(error, OsStr::from_bytes(path)).into())
            })?;
        }
        Ok(Outcome::Done)
    }
}

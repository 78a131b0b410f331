//! `undercroft mv`.

use super::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::RenameFlags;

/// Rename or move a file or directory.
///
/// A file at the new name is replaced, and so is an empty directory by a directory. If the new name
/// is a directory, the file moves into it.
///
/// For example: undercroft mv root.img /etc/fstab /etc/fstab.old
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    from: OsString,

    /// New path, or a directory to move into.
    to: OsString,

    /// Let the two names change places; both must exist.
    #[arg(long, conflicts_with = "no_replace")]
    exchange: bool,

    /// Fail if the new name exists.
    #[arg(short, long)]
    no_replace: bool,

    /// Do not move into a directory: its own name is the new name.
    #[arg(short = 'T', long)]
    no_target_directory: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let to = if self.exchange || self.no_target_directory {
            self.to.clone()
        } else {
            session.destination(&self.to, &self.from)?
        };
        let flags = match (self.exchange, self.no_replace) {
            (true, _) => RenameFlags::EXCHANGE,
            (_, true) => RenameFlags::NO_REPLACE,
            _ => RenameFlags::REPLACE,
        };
        session.fs.rename(&self.from, &to, flags)?;
        Ok(Outcome::Done)
    }
}

//! `undercroft mv`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_xfs::Error;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, RenameMode};

/// Rename or move a file or directory.
///
/// A file at the new name is replaced, and so is an empty directory by a directory. If the new name
/// is a directory, the file moves into it.
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
        let mode = match (self.exchange, self.no_replace) {
            (true, _) => RenameMode::Exchange,
            (_, true) => RenameMode::NoReplace,
            _ => RenameMode::Replace,
        };
        // The error for a source that is not there comes from the move.
        let kind = session.find_if_there(&self.from)?.map(|number| session.kind(number));
        let kind = kind.transpose()?.unwrap_or(FileType::Directory);
        let source = session.place_for(&self.from, kind)?;
        let target = session.place_for(&to, kind)?;
        ops::rename(session.volume, source, target, mode, session.now()).map_err(|error| {
            // Both paths may be meant; the name tells which.
            let name = ops::path_text(target.name);
            match &error {
                Error::NotFound(found) if *found != name => renamed(error, &self.from),
                Error::WrongKind { path, .. } if *path != name => renamed(error, &self.from),
                _ => renamed(error, &to),
            }
        })?;
        Ok(Outcome::Done)
    }
}

//! `undercroft truncate`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use crate::value;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_xfs::ops::FileEdit;

/// Set the size of a file: what is behind it goes, what is new is a hole.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Bytes (suffixes K, M, G, T).
    #[arg(value_parser = value::size)]
    size: u64,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let number = session.find(&self.path)?;
        FileEdit::open(session.volume, number, session.now())
            .and_then(|mut file| file.truncate(self.size))
            .map_err(|error| renamed(error, &self.path))?;
        Ok(Outcome::Done)
    }
}

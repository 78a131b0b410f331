//! `undercroft truncate`.

use super::Verb;
use crate::report::Outcome;
use crate::session::Session;
use crate::value;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::PathError;

/// Set the size of a file: data behind it is freed, new space is a hole.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Bytes (such as 64K, 1.5G, 10MB).
    #[arg(value_parser = value::size)]
    size: u64,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let file = session.fs.open_file(&self.path)?;
        file.set_len(self.size)
            .and_then(|()| file.close())
            .map_err(|error| PathError::new(&self.path, error))?;
        Ok(Outcome::Done)
    }
}

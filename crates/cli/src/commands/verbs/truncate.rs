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
///
/// For example: undercroft truncate -s 1G root.img /etc/fstab
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Bytes (such as 64K, 1.5G, 10MB).
    #[arg(value_parser = value::size, required_unless_present = "size")]
    bytes: Option<u64>,

    /// The same, as truncate(1) takes it.
    #[arg(short, long, value_name = "BYTES", value_parser = value::size, conflicts_with = "bytes")]
    size: Option<u64>,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let file = session.fs.open_file(&self.path)?;
        // One of them is there.
        file.set_len(self.bytes.or(self.size).unwrap_or(0))
            .and_then(|()| file.close())
            .map_err(|error| PathError::new(&self.path, error))?;
        Ok(Outcome::Done)
    }
}

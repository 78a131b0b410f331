//! `undercroft cat`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::OpenFile;
use undercroft_xfs::ops;

/// Print the contents of files.
///
/// Symbolic links are not followed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,
}

impl Verb for Args {
    fn changes(&self) -> bool {
        false
    }

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        self.path.iter().try_for_each(|path| print(session, path, out))?;
        Ok(Outcome::Done)
    }
}

/// Prints the contents of a file.
pub(super) fn print(session: &Session<'_>, path: &OsStr, out: &mut dyn Write) -> Result<()> {
    let at = || ops::path_text(path.as_bytes());
    copy(&session.open(path)?, out, at)
}

/// Bytes read at a time.
const CHUNK: usize = 1 << 20;

/// Copies the contents of a file; `at` names it in errors.
fn copy(file: &OpenFile, out: &mut dyn Write, at: impl Fn() -> String + Copy) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let len = file.read(offset, &mut buffer).with_context(at)?;
        if len == 0 {
            return Ok(());
        }
        out.write_all(&buffer[..len])?;
        offset += len as u64;
    }
}

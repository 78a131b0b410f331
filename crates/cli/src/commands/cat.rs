//! `undercroft cat`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::{Context, Result};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::ops::{self, FileReader, Piece};

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
    let volume = session.volume;
    let at = || ops::path_text(path.as_bytes());
    let inode = volume.inode(session.find(path)?).with_context(at)?;
    let inode = inode.read();
    let mut reader = FileReader::new(volume, &inode).with_context(at)?;
    while let Some(piece) = reader.next_piece().with_context(at)? {
        match piece {
            Piece::Data { buffer, len, .. } => out.write_all(&buffer[..len])?,
            Piece::Hole { len, .. } => write_zeros(out, len)?,
        }
    }
    Ok(())
}

fn write_zeros(out: &mut dyn Write, len: u64) -> Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let mut left = len;
    while left > 0 {
        let part = left.min(ZEROS.len() as u64);
        // At most 64 KiB.
        out.write_all(&ZEROS[..part as usize])?;
        left -= part;
    }
    Ok(())
}

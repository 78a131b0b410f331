//! `undercroft cat`.

use crate::image::ImageArgs;
use crate::report::Outcome;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::ops::{self, FileReader, Piece};

/// Print the contents of files.
///
/// Symbolic links are not followed.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) image: ImageArgs,

    /// Paths from the root directory of the volume.
    #[arg(required = true)]
    path: Vec<OsString>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Outcome> {
    let volume = args.image.open()?;
    for path in &args.path {
        let path = path.as_bytes();
        let at = || ops::path_text(path);
        let inode = volume.inode(ops::resolve(&volume, path)?).with_context(at)?;
        let inode = inode.read();
        let mut reader = FileReader::new(&volume, &inode).with_context(at)?;
        while let Some(piece) = reader.next_piece().with_context(at)? {
            match piece {
                Piece::Data { buffer, len, .. } => out.write_all(&buffer[..len])?,
                Piece::Hole { len, .. } => write_zeros(out, len)?,
            }
        }
    }
    Ok(Outcome::Done)
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

//! `undercroft get`.

use super::cat;
use super::verb::Verb;
use crate::report::Outcome;
use crate::session::Session;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use undercroft_xfs::ops::{FileReader, Piece};
use undercroft_xfs::units::InodeNumber;

/// Copy a file out of the volume.
///
/// Contents, holes, permission bits and the time of modification are taken over. Whole trees are
/// what `undercroft extract` is for.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// The file to make on this machine, a directory to make it in, or - for standard output.
    #[arg(default_value = ".")]
    dest: PathBuf,

    /// Overwrite a file that exists.
    #[arg(short, long)]
    force: bool,
}

impl Verb for Args {
    fn changes(&self) -> bool {
        false
    }

    fn run(&self, session: &Session<'_>, out: &mut dyn Write) -> Result<Outcome> {
        let number = session.find(&self.path)?;
        if self.dest.as_os_str() == "-" {
            cat::print(session, &self.path, out)?;
            return Ok(Outcome::Done);
        }
        let dest = if self.dest.is_dir() {
            let name = Path::new(&self.path).file_name();
            self.dest.join(name.context("the root directory is no file")?)
        } else {
            self.dest.clone()
        };
        if !self.force && dest.symlink_metadata().is_ok() {
            bail!("{} exists; use --force to overwrite it", dest.display());
        }
        copy(session, number, &dest).with_context(|| format!("cannot write {}", dest.display()))?;
        Ok(Outcome::Done)
    }
}

fn copy(session: &Session<'_>, number: InodeNumber, dest: &Path) -> Result<()> {
    let inode = session.volume.inode(number)?;
    let inode = inode.read();
    // Before the file is made: what cannot be read leaves nothing behind.
    let mut reader = FileReader::new(session.volume, &inode)?;
    let mut file = File::create(dest)?;
    while let Some(piece) = reader.next_piece()? {
        if let Piece::Data { offset, buffer, len } = piece {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(&buffer[..len])?;
        }
    }
    file.set_len(inode.core.size)?;
    file.set_permissions(std::fs::Permissions::from_mode((inode.core.mode & 0o777).into()))?;
    let time = inode.core.mtime;
    let times = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        last_modification: rustix::fs::Timespec {
            tv_sec: time.seconds,
            tv_nsec: time.nanoseconds.into(),
        },
    };
    Ok(rustix::fs::futimens(&file, &times)?)
}

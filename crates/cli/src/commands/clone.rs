//! `undercroft clone`.

use super::verb::Verb;
use crate::report::Outcome;
use crate::session::{Session, renamed};
use crate::value;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, CloneRange};
use undercroft_xfs::{Error, ErrorKind};

/// Make a file, or a range of it, the same as another by sharing its blocks.
///
/// Both are independent afterwards: what is written to one is not seen in the other. A file that
/// does not exist is created. Offsets are multiples of the block size.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file to share blocks of.
    source: OsString,

    /// The file that gets them, or a directory to create it in.
    path: OsString,

    #[command(flatten)]
    range: RangeArgs,
}

/// Which part of one file becomes which part of another.
#[derive(clap::Args)]
pub(super) struct RangeArgs {
    /// Where the range starts in the source, in bytes (suffixes K, M, G, T).
    #[arg(long, default_value = "0", value_parser = value::size, value_name = "BYTES")]
    source_start: u64,

    /// Where it starts in the other file.
    #[arg(long, default_value = "0", value_parser = value::size, value_name = "BYTES")]
    start: u64,

    /// How long it is; up to the end of the source if left out.
    #[arg(short, long, value_parser = value::size, value_name = "BYTES")]
    length: Option<u64>,
}

impl RangeArgs {
    /// The range, for a source of `size` bytes.
    pub(super) fn range(&self, size: u64) -> CloneRange {
        let len = self.length.unwrap_or(size.saturating_sub(self.source_start));
        CloneRange { source: self.source_start, target: self.start, len }
    }
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        let source = session.find(&self.source)?;
        let path = session.destination(&self.path, &self.source)?;
        let (size, kind, mode) = {
            let inode = session.volume.inode(source)?;
            let inode = inode.read();
            (inode.core.size, inode.file_type(), inode.core.mode & 0o777)
        };
        let range = self.range.range(size);
        let clone = |target| {
            ops::clone_range(session.volume, source, target, &range, session.now())
                .map_err(|error| renamed(error, &path))
        };
        if let Some(target) = session.find_if_there(&path)? {
            clone(target)?;
            return Ok(Outcome::Done);
        }
        if kind != FileType::Regular {
            let path = ops::path_text(self.source.as_bytes());
            let wrong = match kind {
                FileType::Directory => ErrorKind::IsDirectory,
                _ => ErrorKind::Invalid,
            };
            return Err(Error::WrongKind { path, what: "not a regular file", kind: wrong }.into());
        }
        // It gets its name when all of it is there.
        let place = session.place(&path)?;
        let new = session.new_inode(FileType::Regular, mode, (0, 0));
        let target = ops::create_unlinked(session.volume, place.parent, &new)?;
        clone(target)
            .and_then(|()| {
                ops::link(session.volume, target, place.parent, place.name, session.now())
            })
            .inspect_err(|_| {
                // The first error counts.
                let _ = ops::reclaim(session.volume, target);
            })?;
        Ok(Outcome::Done)
    }
}

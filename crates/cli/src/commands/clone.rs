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
use undercroft_xfs::{Error, ErrorKind, OpenFile};

/// Make a file, or a range of it, the same as another by sharing its blocks.
///
/// Both are independent afterwards: a write to one is not seen in the other. A file that does not
/// exist is created. Offsets are multiples of the block size.
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
    /// Where the range starts in the source, in bytes (such as 64K, 1.5G, 10MB).
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
        let source = session.open(&self.source)?;
        let path = session.destination(&self.path, &self.source)?;
        let (kind, mode) = {
            let inode = source.inode().read();
            (inode.file_type(), inode.core.mode & 0o777)
        };
        let range = self.range.range(source.size());
        let clone = |target: &OpenFile| {
            target
                .clone_range(&source, &range, session.now())
                .map_err(|error| renamed(error, &path))
        };
        if let Some(target) = session.find_if_there(&path)? {
            clone(&OpenFile::open(session.volume, target)?)?;
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
        // It gets its name when all of it is there; without one it is freed when it is closed.
        let place = session.place_for(&path, kind)?;
        let new = session.new_inode(FileType::Regular, mode, (0, 0));
        let target = ops::create_unlinked(session.volume, place.parent, &new)?;
        clone(&target)?;
        let number = target.number();
        ops::link(session.volume, number, place.parent, place.name, session.now())?;
        target.close()?;
        Ok(Outcome::Done)
    }
}

//! `undercroft clone`.

use super::Verb;
use crate::report::Outcome;
use crate::session::Session;
use crate::value;
use anyhow::Result;
use std::ffi::OsString;
use std::io::Write;
use undercroft_fs::{File, FileType, NewFile, PathError};
use undercroft_xfs::ops::CloneRange;

/// Make a file, or a range of it, the same as another by sharing its blocks.
///
/// Both are independent afterwards: a write to one is not seen in the other. A file that does not
/// exist is created. Offsets are multiples of the block size.
///
/// For example: undercroft clone root.img /etc/fstab /etc/fstab.old
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
        let fs = &session.fs;
        let source = fs.open_file(&self.source)?;
        // An error for what is no regular file.
        source.seek_data(0).map_err(|error| PathError::new(&self.source, error))?;
        let path = session.destination(&self.path, &self.source)?;
        let range = self.range.range(source.size());
        let place = fs.place_followed(&path)?;
        let failed = |error| place.failed(error);
        let clone = |target: &File| {
            target.open_file().clone_range(source.open_file(), &range, session.now())
        };
        if place.metadata().is_some() {
            clone(&fs.open_file(&path)?).map_err(failed)?;
            return Ok(Outcome::Done);
        }
        place.expect_kind(FileType::Regular)?;
        // It gets its name when all of it is there; without one it is freed when it is closed.
        let new = NewFile::new(source.metadata().mode & 0o777);
        let directory = place.directory().number();
        let target = fs.nodes().tmpfile(directory, &new).map_err(failed)?;
        clone(&target)
            .and_then(|()| fs.nodes().link_file(&target, directory, place.name()))
            .and_then(|_| target.close())
            .map_err(failed)?;
        Ok(Outcome::Done)
    }
}

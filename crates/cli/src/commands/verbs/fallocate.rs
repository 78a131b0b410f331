//! `undercroft fallocate`.

use super::Verb;
use crate::failure::Usage;
use crate::report::Outcome;
use crate::session::Session;
use crate::text;
use crate::value;
use anyhow::{Result, anyhow, bail};
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use undercroft_fs::{Allocation, Error, File, PathError};
use undercroft_xfs::ops::path_text;

/// Allocate, free, zero, take out or insert a range of a file.
///
/// Without options, every block of the range is allocated, and reads as zeros until it is written.
///
/// For example: undercroft fallocate --punch-hole --length 4K root.img /etc/fstab
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Path from the root directory of the volume.
    path: OsString,

    /// Where the range starts, in bytes (such as 64K, 1.5G, 10MB).
    #[arg(short, long, default_value = "0", value_parser = value::size, value_name = "BYTES")]
    start: u64,

    /// How long it is, in bytes (such as 64K, 1.5G, 10MB).
    #[arg(short, long, value_parser = value::size, value_name = "BYTES")]
    length: u64,

    /// Free the range: a hole is left. The size stays.
    #[arg(short, long, group = "mode")]
    punch_hole: bool,

    /// Make the range read as zeros, allocated.
    #[arg(short, long, group = "mode")]
    zero_range: bool,

    /// Take the range out: the data behind it moves down. Whole blocks only.
    #[arg(short, long, group = "mode")]
    collapse_range: bool,

    /// Insert a hole: the data behind moves up. Whole blocks only.
    #[arg(short, long, group = "mode")]
    insert_range: bool,

    /// Leave the size as it is when the range ends behind the file.
    #[arg(short = 'n', long, conflicts_with_all = ["collapse_range", "insert_range"])]
    keep_size: bool,
}

impl Verb for Args {
    fn run(&self, session: &Session<'_>, _: &mut dyn Write) -> Result<Outcome> {
        if self.length == 0 {
            bail!(Usage("--length 0 is no range: write how long it is".into()));
        }
        let file = session.fs.open_file(&self.path)?;
        match self.change(session, &file).and_then(|()| file.close()) {
            Ok(()) => Ok(Outcome::Done),
            Err(error @ Error::NoSpace { .. }) => Err(self.too_much(session, error)),
            Err(error) => Err(PathError::new(&self.path, error).into()),
        }
    }
}

impl Args {
    /// Names the space asked for, and the free space: the engine knows only the piece it looked for
    /// last.
    fn too_much(&self, session: &Session<'_>, error: Error) -> anyhow::Error {
        let Ok(usage) = session.fs.statfs() else { return error.into() };
        let block = u64::from(usage.block_size);
        let needed = self.length.div_ceil(block);
        let error = Error::NoSpace { needed, block_size: usage.block_size as usize };
        let free = usage.free_blocks.saturating_mul(block);
        anyhow!(error).context(format!(
            "{}: {} asked for, {} free",
            path_text(self.path.as_bytes()),
            text::bytes(self.length),
            text::bytes(free)
        ))
    }

    fn change(&self, session: &Session<'_>, file: &File) -> Result<(), Error> {
        let end = self.start.checked_add(self.length);
        let end = end.ok_or_else(|| Error::TooLarge("the range ends behind 2^64 bytes".into()))?;
        let range = self.start..end;
        let keep_size = self.keep_size;
        if self.punch_hole || self.zero_range {
            // The blocks at the ends of the range are zeroed in their places: a crash could keep
            // that, and lose earlier changes.
            session.volume.sync()?;
        }
        let mode = match () {
            () if self.punch_hole => Allocation::PunchHole,
            () if self.zero_range => Allocation::Zero { keep_size },
            () if self.collapse_range => Allocation::Collapse,
            () if self.insert_range => Allocation::Insert,
            () => Allocation::Reserve { keep_size },
        };
        file.allocate(mode, range)
    }
}

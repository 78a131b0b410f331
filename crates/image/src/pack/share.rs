//! File data whose blocks the image shares with the source, where the file system that holds both
//! can do that.
//!
//! The source lends large files in the place of their data. What lies at whole blocks of the volume
//! and of the file system is cloned into the extents that the file got; what is left at either end,
//! and what cannot be cloned, is copied. The bytes of the image are the same.

use super::{PackError, Reflink};
use std::io;
use std::ops::Range;
use undercroft_block::{BlockDevice, FileRange};
use undercroft_source::{DataRange, Lending, LentFile, Source};
use undercroft_xfs::Error;
use undercroft_xfs::ops::FileWriter;

/// Length of a range from which on a clone is worth its call.
const LEAST: u64 = 64 << 10;

/// Has `source` lend its large files, if they are to be shared and the image may be able to.
///
/// # Errors
/// They must be shared, and there is no way to.
pub(super) fn arrange(
    source: &mut dyn Source,
    device: &dyn BlockDevice,
    reflink: Reflink,
) -> Result<(), PackError> {
    if reflink == Reflink::Never {
        return Ok(());
    }
    let clones = device.limits().clones_ranges;
    if clones && source.lend_files(&Lending::new(LEAST)) {
        return Ok(());
    }
    match (reflink, clones) {
        (Reflink::Always, true) => Err(PackError::NothingToShare("the source is not a directory")),
        (Reflink::Always, false) => Err(PackError::NothingToShare("the image is not a file")),
        _ => Ok(()),
    }
}

/// The way of a lent file into the volume.
pub(super) struct Transfer<'a, 'w> {
    pub(super) file: FileWriter<'w>,
    pub(super) lent: &'a LentFile,
    /// Bytes of a block of the volume.
    pub(super) block: u64,
    /// Nothing large may be copied.
    pub(super) always: bool,
    /// Path of the entry, for errors.
    pub(super) path: &'a dyn ToString,
    /// The file systems of the two cannot share.
    pub(super) refused: bool,
}

impl Transfer<'_, '_> {
    /// Moves the data in `ranges`; returns how many bytes are shared.
    pub(super) fn run(mut self, ranges: &[DataRange]) -> Result<u64, PackError> {
        // What file systems like best may be more than what they need.
        let unit = self.lent.unit().min(LEAST);
        let unit = if unit.is_power_of_two() { unit.max(self.block) } else { self.block };
        let mut shared = 0;
        for range in ranges {
            let all = range.offset..range.end();
            let whole = all.start.next_multiple_of(unit)..all.end / unit * unit;
            if self.refused || range.length < LEAST || whole.is_empty() {
                self.copy(all)?;
                continue;
            }
            self.copy(all.start..whole.start)?;
            if self.share(whole.clone())? {
                shared += whole.end - whole.start;
            } else {
                self.copy(whole.clone())?;
            }
            self.copy(whole.end..all.end)?;
        }
        self.file.finish();
        self.lent.check()?;
        Ok(shared)
    }

    /// Shares a range; `false` if that cannot be.
    fn share(&mut self, range: Range<u64>) -> Result<bool, PackError> {
        let source = FileRange { file: self.lent.file().clone(), offset: range.start };
        match self.file.clone_range(range.start, range.end - range.start, &source) {
            Ok(()) => Ok(true),
            Err(Error::Device(error)) if error.cannot_clone() && self.always => {
                Err(PackError::NotShared { path: self.path.to_string(), source: error })
            }
            Err(Error::Device(error)) if error.cannot_clone() => {
                // Of a wrong range others may be right: where blocks of the volume are smaller than
                // those of the file system, some extents begin inside one.
                let of_range = |error: &io::Error| error.kind() == io::ErrorKind::InvalidInput;
                if !error.io_error().is_some_and(of_range) {
                    self.refused = true;
                    self.lent.refuse();
                }
                Ok(false)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn copy(&mut self, range: Range<u64>) -> Result<(), PackError> {
        let mut at = range.start;
        while at < range.end {
            let chunk = self.lent.read(at, range.end - at)?;
            let put = self.file.put(at, chunk.buffer(), chunk.range());
            put.map_err(|error| self.failed(error))?;
            at += chunk.len() as u64;
        }
        Ok(())
    }

    fn failed(&self, source: Error) -> PackError {
        PackError::Entry { path: self.path.to_string(), source }
    }
}

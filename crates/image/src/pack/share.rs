//! File data whose blocks the image shares with the source, where the file system that holds both
//! can do that.
//!
//! The source lends large files in the place of their data. What lies at whole blocks of the volume
//! and of the file system is cloned into the extents that the file got; what is left at either end,
//! and what cannot be cloned, is copied. The bytes of the image are the same.
//!
//! A clone keeps the kernel busy for some time, and nothing is known after it but that it was done:
//! clones go the way of all data, with the ends between them, while the next entries are stored.

use super::{PackError, Reflink};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use undercroft_block::{BlockDevice, FileRange};
use undercroft_source::{DataRange, EntryPath, Lending, LentFile, Source};
use undercroft_xfs::Error;
use undercroft_xfs::ops::{DataWriter, FileMap, FileWriter, RangeClone};

/// Length of a range from which on a clone is worth its call.
const LEAST: u64 = 64 << 10;

/// Files whose clones are under way at a time: the source has some 300 open beside them, and as many
/// directories, of the 1,024 that a process may have in most places.
const MOST_UNDER_WAY: usize = 256;

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

/// The lent files on their way into the volume.
pub(super) struct Shares {
    /// Bytes of a block of the volume.
    block: u64,
    /// Nothing large may be copied.
    always: bool,
    /// Oldest first.
    under_way: VecDeque<UnderWay>,
    /// Bytes whose blocks are shared.
    pub(super) bytes: u64,
}

/// A file whose clones have been asked for, and whose other data is on its way.
struct UnderWay {
    path: EntryPath,
    lent: LentFile,
    map: FileMap,
    clones: Vec<(Range<u64>, RangeClone)>,
}

impl Shares {
    /// None yet, for a volume with blocks of so many bytes.
    pub(super) fn new(block: u64, reflink: Reflink) -> Self {
        let always = reflink == Reflink::Always;
        Self { block, always, under_way: VecDeque::new(), bytes: 0 }
    }

    /// Sends the data of a file, in `ranges`, to the extents in `map`.
    ///
    /// # Errors
    /// Of this file or of one before: it cannot be read or has changed, it must be shared and cannot
    /// be, or the device failed.
    pub(super) fn send(
        &mut self,
        writer: &DataWriter,
        map: FileMap,
        lent: LentFile,
        (path, ranges): (&EntryPath, &[DataRange]),
    ) -> Result<(), PackError> {
        // What file systems like best may be more than what they need.
        let unit = lent.unit().min(LEAST);
        let unit = if unit.is_power_of_two() { unit.max(self.block) } else { self.block };
        let mut clones = Vec::new();
        let mut file = writer.file(map);
        for range in ranges {
            let all = range.offset..range.end();
            let whole = all.start.next_multiple_of(unit)..all.end / unit * unit;
            if range.length < LEAST || whole.is_empty() {
                copy(&mut file, &lent, all, path)?;
                continue;
            }
            copy(&mut file, &lent, all.start..whole.start, path)?;
            let source = FileRange { file: lent.file().clone(), offset: whole.start };
            let clone = file
                .clone_range(whole.start, whole.end - whole.start, &source)
                .map_err(|error| failed(path, error))?;
            copy(&mut file, &lent, whole.end..all.end, path)?;
            clones.push((whole, clone));
        }
        let map = file.finish();
        self.under_way.push_back(UnderWay { path: path.clone(), lent, map, clones });
        if self.under_way.len() >= MOST_UNDER_WAY {
            // Waiting sends all that the plug holds, which is not to be done for each file.
            while self.under_way.len() > MOST_UNDER_WAY / 2 {
                self.settle_oldest(writer)?;
            }
        }
        while self.under_way.front().is_some_and(UnderWay::is_complete) {
            self.settle_oldest(writer)?;
        }
        Ok(())
    }

    /// Waits for the answers to all clones, and copies what was refused.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub(super) fn settle(&mut self, writer: &DataWriter) -> Result<(), PackError> {
        while !self.under_way.is_empty() {
            self.settle_oldest(writer)?;
        }
        Ok(())
    }

    fn settle_oldest(&mut self, writer: &DataWriter) -> Result<(), PackError> {
        let Some(UnderWay { path, lent, map, clones }) = self.under_way.pop_front() else {
            return Ok(());
        };
        let mut file = writer.file(map);
        for (range, clone) in clones {
            match clone.wait() {
                Ok(()) => self.bytes += range.end - range.start,
                Err(Error::Device(source)) if source.cannot_clone() && self.always => {
                    return Err(PackError::NotShared { path: path.to_string(), source });
                }
                Err(Error::Device(error)) if error.cannot_clone() => {
                    // Of a wrong range others may be right: where blocks of the volume are smaller
                    // than those of the file system, some extents begin inside one.
                    let of_range = |error: &io::Error| error.kind() == io::ErrorKind::InvalidInput;
                    if !error.io_error().is_some_and(of_range) {
                        lent.refuse();
                    }
                    copy(&mut file, &lent, range, &path)?;
                }
                Err(error) => return Err(failed(&path, error)),
            }
        }
        file.finish();
        Ok(lent.check()?)
    }
}

impl UnderWay {
    /// Whether all answers are there.
    fn is_complete(&self) -> bool {
        self.clones.iter().all(|(_, clone)| clone.is_complete())
    }
}

/// Sends bytes of a lent file in the memory that they are read into.
fn copy(
    file: &mut FileWriter<'_>,
    lent: &LentFile,
    range: Range<u64>,
    path: &EntryPath,
) -> Result<(), PackError> {
    let mut at = range.start;
    while at < range.end {
        let chunk = lent.read(at, range.end - at)?;
        file.put(at, chunk.buffer(), chunk.range()).map_err(|error| failed(path, error))?;
        at += chunk.len() as u64;
    }
    Ok(())
}

fn failed(path: &EntryPath, source: Error) -> PackError {
    PackError::Entry { path: path.to_string(), source }
}

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

/// Clones of one file without an answer: one with many holes may have a million.
const MOST_ASKED: usize = 4096;

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
    clones: Clones,
}

/// The clones of a file.
#[derive(Default)]
struct Clones {
    /// Without an answer yet.
    asked: Vec<(Range<u64>, RangeClone)>,
    /// To be copied.
    refused: Vec<Range<u64>>,
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
        let mut clones = Clones::default();
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
            clones.asked.push((whole, clone));
            if clones.asked.len() >= MOST_ASKED {
                self.hear(&mut clones, &lent, path)?;
            }
        }
        let map = file.finish();
        self.under_way.push_back(UnderWay { path: path.clone(), lent, map, clones });
        if self.under_way.len() >= MOST_UNDER_WAY {
            self.settle_first(writer, MOST_UNDER_WAY / 2)?;
        }
        let ended = self.under_way.iter().take_while(|file| file.is_complete()).count();
        self.settle_first(writer, ended)
    }

    /// Waits for the answers to all clones, and copies what was refused.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub(super) fn settle(&mut self, writer: &DataWriter) -> Result<(), PackError> {
        self.settle_first(writer, self.under_way.len())
    }

    /// Waits for so many files that were sent first. The last one goes first: answers come in turn,
    /// and who waits for each is woken for each.
    fn settle_first(&mut self, writer: &DataWriter, count: usize) -> Result<(), PackError> {
        let mut files: Vec<_> = self.under_way.drain(..count).collect();
        let last = files.pop();
        last.into_iter().chain(files).try_for_each(|file| self.settle_file(writer, file))
    }

    fn settle_file(&mut self, writer: &DataWriter, file: UnderWay) -> Result<(), PackError> {
        let UnderWay { path, lent, map, mut clones } = file;
        self.hear(&mut clones, &lent, &path)?;
        let mut file = writer.file(map);
        for range in clones.refused {
            copy(&mut file, &lent, range, &path)?;
        }
        file.finish();
        Ok(lent.check()?)
    }

    /// Waits for the answers to what was asked for.
    fn hear(
        &mut self,
        clones: &mut Clones,
        lent: &LentFile,
        path: &EntryPath,
    ) -> Result<(), PackError> {
        for (range, clone) in clones.asked.drain(..) {
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
                    clones.refused.push(range);
                }
                Err(error) => return Err(failed(path, error)),
            }
        }
        Ok(())
    }
}

impl UnderWay {
    /// Whether all answers are there.
    fn is_complete(&self) -> bool {
        self.clones.asked.iter().all(|(_, clone)| clone.is_complete())
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

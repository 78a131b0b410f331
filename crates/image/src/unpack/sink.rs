//! The targets that a volume is unpacked into, and the one loop that does it.

use super::ahead::{Ahead, Queue, Upcoming};
use super::links::{InodeSet, Links};
use super::walk::Course;
use super::{Subtree, UnpackError, attributes};
use std::ops::Range;
use undercroft_xfs::format::{DeviceNumber, FileType, InodeCore};
use undercroft_xfs::inode::{ForkContent, Inode};
use undercroft_xfs::ops::{self, NamedValue};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{OpenFile, ReadPattern};

/// Counts of the files unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Regular files.
    pub files: u64,
    /// Directories, that on top included.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Devices, FIFOs and sockets.
    pub specials: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// Bytes of file data, holes not counted.
    pub bytes: u64,
    /// Names of files that could not be made, for each of which there was an [`Event::Failed`].
    pub failed: u64,
    /// What could not be kept.
    pub warnings: Warnings,
}

/// Counts of what could not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// Entries whose owner could not be set; they have no setuid and setgid bits then.
    pub owners: u64,
    /// Extended attributes that could not be set.
    pub attributes: u64,
    /// Devices and other special files that could not be made.
    pub specials: u64,
}

impl Warnings {
    /// Whether everything was kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How far the work is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Names unpacked.
    pub entries: u64,
    /// Bytes of data unpacked.
    pub bytes: u64,
}

/// What happens on the way.
#[derive(Debug)]
pub enum Event<'a> {
    /// This much is done.
    Progress(Progress),
    /// A name was left out; the work goes on.
    Failed(&'a UnpackError),
}

/// Names between two reports of progress.
const REPORT_EVERY: u64 = 256;

/// One inode on its way out.
pub(super) struct Item<'a> {
    subtree: Subtree<'a>,
    /// Path from the directory on top, without slashes at its ends; empty for that itself.
    pub(super) path: &'a [u8],
    inode: &'a Inode,
    /// Opened already.
    file: Option<OpenFile>,
    number: InodeNumber,
    pub(super) kind: FileType,
    pub(super) core: InodeCore,
    /// Number of a device.
    pub(super) device: Option<DeviceNumber>,
    pub(super) attributes: &'a [NamedValue],
}

impl Item<'_> {
    /// Last component of the path; empty for the directory on top.
    pub(super) fn name(&self) -> &[u8] {
        self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// The path for a message.
    pub(super) fn text(&self) -> String {
        if self.path.is_empty() { ".".to_owned() } else { ops::path_text(self.path) }
    }

    /// An error of the volume in this inode.
    pub(super) fn damaged(&self, source: undercroft_xfs::Error) -> UnpackError {
        self.subtree.damaged(self.path, source)
    }

    /// An error of the destination, which holds no files of this size.
    pub(super) fn too_large(&self) -> UnpackError {
        UnpackError::TooLarge { path: self.text(), size: self.core.size }
    }

    /// The path is longer than those of sources.
    pub(super) fn path_too_long(&self) -> UnpackError {
        let (length, start) = (self.path.len(), &self.path[..self.path.len().min(100)]);
        UnpackError::PathLength { path: format!("{}...", ops::path_text(start)), length }
    }

    /// The contents, and where in them data is.
    pub(super) fn open(&mut self) -> Result<(OpenFile, Vec<Range<u64>>), UnpackError> {
        let opened = self.file.take();
        let open = || {
            let file =
                opened.map_or_else(|| OpenFile::open(self.subtree.volume, self.number), Ok)?;
            // Refuses what cannot be read before anything is made of it.
            file.read(0, &mut [])?;
            file.expect_reads(ReadPattern::Sequential);
            let ranges = file.data_ranges()?;
            Ok((file, ranges))
        };
        open().map_err(|error| self.damaged(error))
    }

    /// Hands over the data of a file piece by piece, with the offsets; returns how much it was.
    pub(super) fn copy(
        &self,
        file: &OpenFile,
        ranges: &[Range<u64>],
        buffer: &mut Vec<u8>,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), UnpackError>,
    ) -> Result<u64, UnpackError> {
        let mut bytes = 0;
        for range in ranges {
            let lent = file.lend(range.clone(), buffer, &mut take);
            bytes += lent.map_err(|error| self.damaged(error))??;
        }
        Ok(bytes)
    }

    /// The target of a symbolic link.
    pub(super) fn target(&self) -> Result<Vec<u8>, UnpackError> {
        let target = ops::read_link(self.subtree.volume, &self.inode.read());
        target.map_err(|error| self.damaged(error))
    }
}

/// Takes a tree, depth first.
pub(super) trait Sink {
    /// A directory begins.
    fn enter(&mut self, item: &Item<'_>) -> Result<(), UnpackError>;
    /// A directory ends.
    fn leave(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError>;
    /// A regular file; returns the number of bytes of data in it. One that is
    /// [too large](UnpackError::TooLarge) does not stay.
    fn file(&mut self, item: &mut Item<'_>, warnings: &mut Warnings) -> Result<u64, UnpackError>;
    /// A symbolic link.
    fn symlink(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError>;
    /// A device, FIFO or socket.
    fn special(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError>;
    /// A further name of what came under the path `first`. The item is without attributes.
    fn link(&mut self, item: &Item<'_>, first: &[u8]) -> Result<(), UnpackError>;
}

/// Walks a tree into a sink.
pub(super) fn unpack(
    subtree: Subtree<'_>,
    course: Course,
    sink: &mut dyn Sink,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, UnpackError> {
    let queue = Queue::default();
    std::thread::scope(|scope| {
        let walk = Ahead::start(scope, &queue, subtree, course)?;
        deliver_all(subtree, walk, sink, report)
    })
}

fn deliver_all(
    subtree: Subtree<'_>,
    mut walk: Ahead<'_>,
    sink: &mut dyn Sink,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, UnpackError> {
    let mut links = Links::default();
    let mut too_large = InodeSet::default();
    let (mut summary, mut entries) = (Summary::default(), 0);
    while let Some(Upcoming { path, inode, entering, file }) = walk.next()? {
        let state = inode.read();
        let (number, kind, core) = (state.number, state.file_type(), state.core.clone());
        let device = match &state.data.content {
            ForkContent::Device(number) => Some(*number),
            _ => None,
        };
        let first = match (entering, kind != FileType::Directory) {
            (true, true) => links.meet(number, core.nlink, &path)?,
            _ => None,
        };
        // A file with many names has as many parent pointers: its attributes are read once.
        let list = match first {
            Some(_) => Vec::new(),
            None => attributes::of(subtree.volume, &state)
                .map_err(|error| subtree.damaged(&path, error))?,
        };
        drop(state);
        let (path, inode, attributes) = (path.as_slice(), &inode, list.as_slice());
        let mut item = Item { subtree, path, inode, file, number, kind, core, device, attributes };
        if entering {
            let done = match first {
                Some(_) if too_large.contains(number) => Err(item.too_large()),
                Some(first) => sink.link(&item, &first).map(|()| summary.hard_links += 1),
                None => deliver(&mut item, sink, &mut summary),
            };
            match done {
                Err(error @ UnpackError::TooLarge { .. }) => {
                    too_large.insert(number);
                    summary.failed += 1;
                    report(Event::Failed(&error));
                }
                done => done?,
            }
            entries += 1;
            if entries % REPORT_EVERY == 0 {
                report(Event::Progress(Progress { entries, bytes: summary.bytes }));
            }
        } else {
            sink.leave(&item, &mut summary.warnings)?;
        }
    }
    report(Event::Progress(Progress { entries, bytes: summary.bytes }));
    Ok(summary)
}

/// Hands over an inode under its first name.
fn deliver(
    item: &mut Item<'_>,
    sink: &mut dyn Sink,
    summary: &mut Summary,
) -> Result<(), UnpackError> {
    let warnings = &mut summary.warnings;
    match item.kind {
        FileType::Directory => {
            summary.directories += 1;
            sink.enter(item)
        }
        FileType::Regular => {
            summary.bytes += sink.file(item, warnings)?;
            summary.files += 1;
            Ok(())
        }
        FileType::Symlink => {
            summary.symlinks += 1;
            sink.symlink(item, warnings)
        }
        _ => {
            summary.specials += 1;
            sink.special(item, warnings)
        }
    }
}

//! A volume walked into a target.

use super::ahead::{Ahead, Queue, Upcoming};
use super::links::{InodeSet, Links};
use super::sink::{Contents, Event, Item, Progress, Sink, Summary, Take};
use super::walk::Course;
use super::{Subtree, UnpackError, attributes};
use std::ops::Range;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::{ForkContent, Inode};
use undercroft_xfs::ops;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{OpenFile, ReadPattern};

/// Names between two reports of progress.
pub(super) const REPORT_EVERY: u64 = 256;

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
        let (path, attributes) = (path.as_slice(), list.as_slice());
        let item = Item { path, kind, core, device, attributes };
        let mut inode = InodeContents { subtree, path, inode: &inode, number, opened: file };
        if entering {
            let done = match first {
                Some(_) if too_large.contains(number) => Err(item.too_large()),
                Some(first) => sink.link(&item, &first).map(|()| summary.hard_links += 1),
                None => deliver(&item, &mut inode, sink, &mut summary),
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
    item: &Item<'_>,
    inode: &mut InodeContents<'_>,
    sink: &mut dyn Sink,
    summary: &mut Summary,
) -> Result<(), UnpackError> {
    let target = match item.kind {
        FileType::Symlink => inode.target()?,
        _ => Vec::new(),
    };
    summary.take(item, inode, &target, sink)
}

/// An inode whose data is wanted.
struct InodeContents<'a> {
    subtree: Subtree<'a>,
    path: &'a [u8],
    inode: &'a Inode,
    number: InodeNumber,
    /// Opened already, or by [`open`](Contents::open).
    opened: Option<OpenFile>,
}

impl InodeContents<'_> {
    /// The target of a symbolic link.
    fn target(&self) -> Result<Vec<u8>, UnpackError> {
        let target = ops::read_link(self.subtree.volume, &self.inode.read());
        target.map_err(|error| self.subtree.damaged(self.path, error))
    }

    fn file(&mut self) -> Result<OpenFile, undercroft_xfs::Error> {
        match self.opened.take() {
            Some(file) => Ok(file),
            None => OpenFile::open(self.subtree.volume, self.number),
        }
    }
}

impl Contents for InodeContents<'_> {
    fn open(&mut self) -> Result<Vec<Range<u64>>, UnpackError> {
        let open = |file: OpenFile| {
            file.read(0, &mut [])?;
            file.expect_reads(ReadPattern::Sequential);
            let ranges = file.data_ranges()?;
            Ok((file, ranges))
        };
        let opened = self.file().and_then(open);
        let (file, ranges) = opened.map_err(|error| self.subtree.damaged(self.path, error))?;
        self.opened = Some(file);
        Ok(ranges)
    }

    fn copy(
        &mut self,
        ranges: &[Range<u64>],
        buffer: &mut Vec<u8>,
        take: &mut Take<'_>,
    ) -> Result<u64, UnpackError> {
        let damaged = |error| self.subtree.damaged(self.path, error);
        let Some(file) = &self.opened else { return Ok(0) };
        let mut bytes = 0;
        for range in ranges {
            bytes += file.lend(range.clone(), buffer, &mut *take).map_err(damaged)??;
        }
        Ok(bytes)
    }
}

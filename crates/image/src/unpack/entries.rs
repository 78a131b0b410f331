//! Any source of entries as a directory or a tar stream.
//!
//! The entries come depth first, each directory before what is in it: so do those of a volume, a
//! directory, and of what was recovered; archives may come in any order, and are not taken here.

use super::UnpackError;
use super::directory::DirectorySink;
use super::sink::{Contents, Event, Item, Progress, Sink, Summary, Take};
use super::tar::TarSink;
use super::volume::REPORT_EVERY;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use undercroft_source::{DataRange, Device, Entry, Kind, Source};
use undercroft_xfs::format::{DeviceNumber, FileType, InodeCore, Timestamp};
use undercroft_xfs::ops::NamedValue;

/// Unpacks entries into the directory `destination`, as
/// [`to_directory`](super::to_directory) unpacks a volume.
///
/// # Errors
/// The source failed, or the destination cannot take it.
pub fn entries_to_directory(
    source: &mut dyn Source,
    destination: &Path,
    replace: bool,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, UnpackError> {
    let mut sink = DirectorySink::open(destination, replace)?;
    deliver_all(source, &mut sink, report)
}

/// Writes entries as a tar stream, as [`to_tar`](super::to_tar) writes a volume.
///
/// # Errors
/// The source failed, or the stream cannot be written.
pub fn entries_to_tar(
    source: &mut dyn Source,
    output: &mut dyn Write,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, UnpackError> {
    let mut sink = TarSink::new(output);
    let summary = deliver_all(source, &mut sink, report)?;
    sink.finish()?;
    Ok(summary)
}

fn deliver_all(
    source: &mut dyn Source,
    sink: &mut dyn Sink,
    report: &mut dyn FnMut(Event<'_>),
) -> Result<Summary, UnpackError> {
    let (mut summary, mut entries) = (Summary::default(), 0);
    let mut open: Vec<Directory> = Vec::new();
    while let Some(entry) = source.next_entry()? {
        let path = entry.path.as_bytes().to_vec();
        while let Some(last) = open.pop_if(|last| !last.holds(&path)) {
            sink.leave(&last.item(), &mut summary.warnings)?;
        }
        let file = Directory::of(&entry);
        let done = match &entry.kind {
            Kind::HardLink(first) => {
                sink.link(&file.item(), first.as_bytes()).map(|()| summary.hard_links += 1)
            }
            kind => {
                let (ranges, target) = parts(kind);
                let mut contents = EntryContents { source, ranges };
                summary.take(&file.item(), &mut contents, target, sink)
            }
        };
        match done {
            Err(error @ UnpackError::TooLarge { .. }) => {
                summary.failed += 1;
                report(Event::Failed(&error));
            }
            done => done?,
        }
        if file.kind == FileType::Directory {
            open.push(file);
        }
        entries += 1;
        if entries % REPORT_EVERY == 0 {
            report(Event::Progress(Progress { entries, bytes: summary.bytes }));
        }
    }
    while let Some(last) = open.pop() {
        sink.leave(&last.item(), &mut summary.warnings)?;
    }
    report(Event::Progress(Progress { entries, bytes: summary.bytes }));
    Ok(summary)
}

/// The ranges of data of a file, and the target of a symbolic link.
fn parts(kind: &Kind) -> (&[DataRange], &[u8]) {
    match kind {
        Kind::Regular { data, .. } => (data, b""),
        Kind::Symlink(target) => (&[], target),
        _ => (&[], b""),
    }
}

/// An entry as the targets take it. Directories are kept until what is in them is done.
struct Directory {
    path: Vec<u8>,
    kind: FileType,
    core: InodeCore,
    device: Option<DeviceNumber>,
    attributes: Vec<NamedValue>,
}

impl Directory {
    fn of(entry: &Entry) -> Self {
        let (kind, device) = kind(&entry.kind);
        let metadata = &entry.metadata;
        let time =
            Timestamp { seconds: metadata.mtime.seconds, nanoseconds: metadata.mtime.nanoseconds };
        let core = InodeCore {
            mode: kind.mode_bits() | metadata.mode,
            uid: metadata.uid,
            gid: metadata.gid,
            size: if let Kind::Regular { size, .. } = &entry.kind { *size } else { 0 },
            atime: time,
            mtime: time,
            nlink: 1,
            ..InodeCore::default()
        };
        let attribute =
            |xattr: &undercroft_source::Xattr| (xattr.name.clone(), xattr.value.clone());
        let attributes = entry.xattrs.iter().map(attribute).collect();
        Self { path: entry.path.as_bytes().to_vec(), kind, core, device, attributes }
    }

    fn item(&self) -> Item<'_> {
        Item {
            path: &self.path,
            kind: self.kind,
            core: self.core.clone(),
            device: self.device,
            attributes: &self.attributes,
        }
    }

    /// Whether a path leads through it.
    fn holds(&self, path: &[u8]) -> bool {
        self.path.is_empty()
            || path.strip_prefix(self.path.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
    }
}

fn kind(kind: &Kind) -> (FileType, Option<DeviceNumber>) {
    let number = |device: &Device| DeviceNumber { major: device.major, minor: device.minor };
    match kind {
        Kind::Directory => (FileType::Directory, None),
        Kind::Regular { .. } | Kind::HardLink(_) => (FileType::Regular, None),
        Kind::Symlink(_) => (FileType::Symlink, None),
        Kind::CharDevice(device) => (FileType::Character, Some(number(device))),
        Kind::BlockDevice(device) => (FileType::Block, Some(number(device))),
        Kind::Fifo => (FileType::Fifo, None),
        Kind::Socket => (FileType::Socket, None),
    }
}

/// The data of the entry that a source returned last.
struct EntryContents<'s> {
    source: &'s mut dyn Source,
    ranges: &'s [DataRange],
}

impl Contents for EntryContents<'_> {
    fn open(&mut self) -> Result<Vec<Range<u64>>, UnpackError> {
        Ok(self.ranges.iter().map(|range| range.offset..range.end()).collect())
    }

    fn copy(
        &mut self,
        _: &[Range<u64>],
        _: &mut Vec<u8>,
        take: &mut Take<'_>,
    ) -> Result<u64, UnpackError> {
        let mut bytes = 0;
        while let Some(data) = self.source.next_data()? {
            take(data.offset, data.chunk.as_slice())?;
            bytes += data.chunk.len() as u64;
        }
        Ok(bytes)
    }
}

//! A volume as a source.

use super::sink::{Contents, Item, Sink, Warnings};
use super::volume::unpack;
use super::walk::Course;
use super::{Subtree, UnpackError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use undercroft_fs::{FileSystem, PathError};
use undercroft_source::ahead::{Ahead, Filling, Stop};
use undercroft_source::{
    BufferPool, Data, DataRange, Device, Entry, EntryPath, Kind, Links, Metadata, Source,
    SourceError, Timestamp, Xattr,
};
use undercroft_xfs::format::FileType;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Volume, WalkOrder};

/// A volume as a source: its entries sorted by name, as those of a directory are.
///
/// The names of the directories on the way to an entry are in memory. A thread reads ahead of the
/// consumer.
#[derive(Debug)]
pub struct VolumeSource {
    volume: Arc<Volume>,
    /// The directory on top, and its path from the root.
    directory: InodeNumber,
    path: Vec<u8>,
    state: State,
    is_scanned: bool,
}

#[derive(Debug)]
enum State {
    Fresh,
    Reading(Ahead<UnpackError>),
    Ended,
}

impl VolumeSource {
    /// The whole volume, which is not to be changed meanwhile.
    #[must_use]
    pub fn new(volume: &Arc<Volume>) -> Self {
        Self::of(Subtree::from(volume))
    }

    /// The directory at a path of a volume, which is not to be changed meanwhile.
    ///
    /// # Errors
    /// As [`Subtree::at`].
    pub fn at(fs: &FileSystem, path: &Path) -> Result<Self, PathError> {
        Ok(Self::of(Subtree::at(fs, path)?))
    }

    fn of(tree: Subtree<'_>) -> Self {
        Self {
            volume: Arc::clone(tree.volume),
            directory: tree.directory,
            path: tree.path.to_vec(),
            state: State::Fresh,
            is_scanned: false,
        }
    }

    fn read(&self) -> Result<Ahead<UnpackError>, SourceError> {
        let (volume, directory) = (Arc::clone(&self.volume), self.directory);
        let path = self.path.clone();
        let read = move |filling: &mut Filling<UnpackError>| {
            let course = Course { order: WalkOrder::Names, data: true };
            let to =
                Receiver::Consumer { filling, pool: BufferPool::default(), buffer: Vec::new() };
            let tree = Subtree { volume: &volume, directory, path: &path };
            unpack(tree, course, &mut SourceSink { to }, &mut |_| {})?;
            Ok(undercroft_source::Warnings::default())
        };
        Ahead::start(read).map_err(SourceError::Thread)
    }
}

fn failed(error: UnpackError) -> SourceError {
    SourceError::Fault(Box::new(error))
}

impl Source for VolumeSource {
    fn scan(&mut self, visit: &mut dyn FnMut(&Entry)) -> Result<(), SourceError> {
        if self.is_scanned || !matches!(self.state, State::Fresh) {
            return Err(SourceError::ScanTooLate);
        }
        self.state = State::Ended;
        let course = Course { order: WalkOrder::Names, data: false };
        let mut sink = SourceSink { to: Receiver::Visitor(visit) };
        let tree = Subtree { volume: &self.volume, directory: self.directory, path: &self.path };
        unpack(tree, course, &mut sink, &mut |_| {}).map_err(failed)?;
        (self.state, self.is_scanned) = (State::Fresh, true);
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, SourceError> {
        let mut reading = match std::mem::replace(&mut self.state, State::Ended) {
            State::Fresh => self.read()?,
            State::Reading(reading) => reading,
            State::Ended => return Ok(None),
        };
        let entry = reading.next_entry().map_err(failed)?;
        if entry.is_some() {
            self.state = State::Reading(reading);
        }
        Ok(entry)
    }

    fn next_data(&mut self) -> Result<Option<Data>, SourceError> {
        let State::Reading(reading) = &mut self.state else { return Ok(None) };
        let data = reading.next_data();
        if data.is_err() {
            self.state = State::Ended;
        }
        data.map_err(failed)
    }

    fn restart(&mut self) -> Result<(), SourceError> {
        if !self.is_scanned {
            return Err(SourceError::NotScanned);
        }
        self.state = State::Fresh;
        Ok(())
    }
}

/// What takes the entries.
enum Receiver<'a> {
    /// A scan, which takes no data.
    Visitor(&'a mut dyn FnMut(&Entry)),
    Consumer {
        filling: &'a mut Filling<UnpackError>,
        pool: BufferPool,
        buffer: Vec<u8>,
    },
}

struct SourceSink<'a> {
    to: Receiver<'a>,
}

impl SourceSink<'_> {
    fn deliver(&mut self, item: &Item<'_>, kind: Kind) -> Result<(), UnpackError> {
        let path = EntryPath::new(item.path.to_vec()).ok_or_else(|| item.path_too_long())?;
        let core = &item.core;
        let several = core.nlink > 1 && item.kind != FileType::Directory;
        let xattr = |(name, value): &(Vec<u8>, Vec<u8>)| {
            let (name, value) = (name.clone(), value.clone());
            Xattr { name, value }
        };
        let entry = Entry {
            path,
            kind,
            metadata: Metadata {
                mode: core.mode & 0o7777,
                uid: core.uid,
                gid: core.gid,
                mtime: Timestamp {
                    seconds: core.mtime.seconds,
                    nanoseconds: core.mtime.nanoseconds,
                },
            },
            xattrs: item.attributes.iter().map(xattr).collect(),
            links: if several { Links::Several } else { Links::Single },
            replaces: false,
        };
        match &mut self.to {
            Receiver::Visitor(visit) => visit(&entry),
            Receiver::Consumer { filling, .. } => filling.entry(entry).map_err(gone)?,
        }
        Ok(())
    }
}

/// The consumer is gone, which learns of no error.
fn gone(_: Stop<UnpackError>) -> UnpackError {
    UnpackError::Output(io::ErrorKind::BrokenPipe.into())
}

impl Sink for SourceSink<'_> {
    fn enter(&mut self, item: &Item<'_>) -> Result<(), UnpackError> {
        self.deliver(item, Kind::Directory)
    }

    fn leave(&mut self, _: &Item<'_>, _: &mut Warnings) -> Result<(), UnpackError> {
        Ok(())
    }

    fn file(
        &mut self,
        item: &Item<'_>,
        contents: &mut dyn Contents,
        _: &mut Warnings,
    ) -> Result<u64, UnpackError> {
        let ranges = contents.open()?;
        let range = |range: &std::ops::Range<u64>| DataRange {
            offset: range.start,
            length: range.end - range.start,
        };
        let data = ranges.iter().map(range).collect();
        self.deliver(item, Kind::Regular { size: item.core.size, data })?;
        let Receiver::Consumer { filling, pool, buffer } = &mut self.to else { return Ok(0) };
        contents.copy(&ranges, buffer, &mut |mut offset, mut bytes| {
            while !bytes.is_empty() {
                let fill = |space: &mut [u8]| {
                    space.copy_from_slice(&bytes[..space.len()]);
                    Ok::<_, UnpackError>(space.len())
                };
                let chunk = pool.piece(bytes.len() as u64, fill)?;
                bytes = &bytes[chunk.len()..];
                let length = chunk.len() as u64;
                filling.data(Data { offset, chunk }).map_err(gone)?;
                offset += length;
            }
            Ok(())
        })
    }

    fn symlink(
        &mut self,
        item: &Item<'_>,
        target: &[u8],
        _: &mut Warnings,
    ) -> Result<(), UnpackError> {
        self.deliver(item, Kind::Symlink(target.to_vec()))
    }

    fn special(&mut self, item: &Item<'_>, _: &mut Warnings) -> Result<(), UnpackError> {
        let device = || {
            let number = item.device.map_or((0, 0), |number| (number.major, number.minor));
            Device { major: number.0, minor: number.1 }
        };
        let kind = match item.kind {
            FileType::Character => Kind::CharDevice(device()),
            FileType::Block => Kind::BlockDevice(device()),
            FileType::Socket => Kind::Socket,
            _ => Kind::Fifo,
        };
        self.deliver(item, kind)
    }

    fn link(&mut self, item: &Item<'_>, first: &[u8]) -> Result<(), UnpackError> {
        let first = EntryPath::new(first.to_vec()).ok_or_else(|| item.path_too_long())?;
        self.deliver(item, Kind::HardLink(first))
    }
}

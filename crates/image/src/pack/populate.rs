//! Fills a new volume with the entries of a source.
//!
//! Every entry is one transaction; the data of a file follows the transaction that made room for
//! it. Parents are found by looking their names up in the volume itself, so memory does not grow
//! with the number of directories.

use super::kernels::Kernels;
use super::replaced::{self, Removed};
use super::share::Shares;
use super::{PackError, PackOptions, Summary, Survey};
use std::sync::Arc;
use undercroft_source::{Entry, EntryPath, Kind, Metadata, Source, Timestamp as SourceTime};
use undercroft_xfs::format::{DeviceNumber, FileType, Timestamp, TimestampEncoding};
use undercroft_xfs::inode::{Inode, InodeGuard};
use undercroft_xfs::mkfs::is_property;
use undercroft_xfs::ops::{self, DataPlacement, DataWriter, FileMap, NewInode, Times};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, Volume};

/// How far a build is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Entries stored.
    pub entries: u64,
    /// Bytes of data stored.
    pub bytes: u64,
    /// Entries there are, if a survey counted them.
    pub entries_total: Option<u64>,
    /// Bytes of data there are, if a survey counted them.
    pub bytes_total: Option<u64>,
}

/// Entries between two reports of progress.
const REPORT_EVERY: u64 = 256;

/// Permission bits of a root directory that the source does not describe.
const DEFAULT_ROOT_MODE: u16 = 0o755;

/// The root directory before the source says anything about it.
pub(super) fn root_inode(options: &PackOptions) -> NewInode<'static> {
    let mtime = SourceTime { seconds: options.epoch.unwrap_or(0), nanoseconds: 0 };
    let metadata = Metadata { mode: DEFAULT_ROOT_MODE, uid: 0, gid: 0, mtime };
    new_inode(options, FileType::Directory, &metadata)
}

/// A new inode with the metadata of an entry.
fn new_inode(options: &PackOptions, kind: FileType, metadata: &Metadata) -> NewInode<'static> {
    let metadata = options.limited(metadata);
    let SourceTime { seconds, nanoseconds } = metadata.mtime;
    let modification = Timestamp { seconds, nanoseconds };
    let epoch = options.epoch.map(|seconds| Timestamp { seconds, nanoseconds: 0 });
    let made = epoch.unwrap_or(modification);
    NewInode {
        mode: kind.mode_bits() | (metadata.mode & 0o7777),
        uid: metadata.uid,
        gid: metadata.gid,
        times: Times { access: modification, modification, change: made, creation: made },
        device: DeviceNumber { major: 0, minor: 0 },
        target: &[],
    }
}

/// A build under way.
pub(super) struct Populator<'a> {
    volume: &'a Volume,
    options: &'a PackOptions,
    writer: DataWriter,
    shares: Shares,
    placement: DataPlacement,
    /// The directory of the last entry: the next one is most often there too. What creating files
    /// changes of its inode is stored when it is left.
    last: (Vec<u8>, Arc<Inode>),
    summary: Summary,
    kernels: Kernels,
    /// Where the data of files is to be, one after the other: then nothing of it is read or written.
    maps: Option<Vec<FileMap>>,
    progress: Progress,
    report: &'a mut dyn FnMut(&Progress),
}

impl<'a> Populator<'a> {
    pub(super) fn new(
        volume: &'a Volume,
        options: &'a PackOptions,
        survey: Option<&Survey>,
        report: &'a mut dyn FnMut(&Progress),
    ) -> Result<Self, PackError> {
        let root = volume.inode(volume.geometry().root_inode).map_err(PackError::volume)?;
        Ok(Self {
            volume,
            options,
            writer: DataWriter::new(volume.geometry(), volume.cache().device()),
            shares: Shares::new(volume.geometry().block_size() as u64, options.reflink),
            placement: DataPlacement::new(volume.geometry()),
            last: (Vec::new(), root),
            summary: Summary { directories: 1, ..Summary::default() },
            kernels: Kernels::default(),
            maps: None,
            progress: Progress {
                entries_total: survey.map(|survey| survey.inodes),
                bytes_total: survey.map(|survey| survey.bytes),
                ..Progress::default()
            },
            report,
        })
    }

    /// Leaves the data of files alone, and keeps the places for it.
    pub(super) fn without_data(mut self) -> Self {
        self.maps = Some(Vec::new());
        self
    }

    /// The places for the data of the files that have some, in their order.
    pub(super) fn take_maps(&mut self) -> Vec<FileMap> {
        self.maps.take().unwrap_or_default()
    }

    /// Stores all entries of the source.
    pub(super) fn run(&mut self, source: &mut dyn Source) -> Result<(), PackError> {
        while let Some(entry) = source.next_entry()? {
            if entry.replaces {
                // Nothing is copied into blocks that have another owner by then.
                self.shares.settle(&self.writer)?;
            }
            self.kernels.add(&entry);
            let at = |source| PackError::Entry { path: entry.path.to_string(), source };
            let map = self.store(&entry).map_err(at)?;
            match (map, &mut self.maps) {
                (None, _) => {}
                (Some(map), Some(maps)) => maps.push(map),
                (Some(map), None) => self.copy_data(source, map, &entry)?,
            }
            self.progress.entries += 1;
            if self.progress.entries.is_multiple_of(REPORT_EVERY) {
                self.writer.check().map_err(PackError::volume)?;
                (self.report)(&self.progress);
            }
        }
        Ok(())
    }

    /// Waits for the data.
    pub(super) fn finish(mut self) -> Result<Summary, PackError> {
        self.store_last().map_err(PackError::volume)?;
        self.shares.settle(&self.writer)?;
        self.summary.shared_bytes = self.shares.bytes;
        self.summary.old_kernel = self.kernels.too_old(&self.options.volume);
        self.writer.finish().map_err(PackError::volume)?;
        (self.report)(&self.progress);
        Ok(self.summary)
    }

    /// Stores one entry; a regular file with data gives the map that the data goes to.
    fn store(&mut self, entry: &Entry) -> Result<Option<FileMap>, Error> {
        let Some((parent_path, name)) = entry.path.split_last() else {
            self.update_directory(self.volume.geometry().root_inode, entry)?;
            return Ok(None);
        };
        let parent = self.directory(parent_path)?;
        if entry.replaces {
            self.remove(&parent, name)?;
        }
        match &entry.kind {
            Kind::HardLink(first) => {
                self.link(&parent, name, first)?;
                Ok(None)
            }
            Kind::Directory => {
                let known = ops::lookup(self.volume, &parent.read(), name)?;
                match known {
                    Some(number) => self.update_directory(number, entry)?,
                    None => drop(self.create(&parent, name, entry)?),
                }
                Ok(None)
            }
            _ => self.create(&parent, name, entry),
        }
    }

    /// The directory at a path, which came before its contents.
    fn directory(&mut self, path: &[u8]) -> Result<Arc<Inode>, Error> {
        if self.last.0 != path {
            self.store_last()?;
            self.last = (path.to_vec(), self.volume.inode(self.find(path)?)?);
        }
        Ok(Arc::clone(&self.last.1))
    }

    /// The inode that came before under a path. The path of an entry is names alone: it has no
    /// dots, and its source has resolved links on the way.
    fn find(&self, path: &[u8]) -> Result<InodeNumber, Error> {
        let mut number = self.volume.geometry().root_inode;
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            let directory = self.volume.inode(number)?;
            let found = ops::lookup_in_use(self.volume, &directory.read(), name)?;
            number = found.ok_or_else(|| Error::NotFound(ops::path_text(path)))?;
        }
        Ok(number)
    }

    /// Stores the inode of the directory of the last entry.
    fn store_last(&self) -> Result<(), Error> {
        let trans = self.volume.begin()?;
        trans.commit(&mut [&mut InodeGuard::new(&self.last.1)])
    }

    /// Creates a new inode for an entry.
    fn create(
        &mut self,
        parent: &Arc<Inode>,
        name: &[u8],
        entry: &Entry,
    ) -> Result<Option<FileMap>, Error> {
        let kind = file_type(&entry.kind);
        let mut new = new_inode(self.options, kind, &entry.metadata);
        match &entry.kind {
            Kind::Symlink(target) => new.target = target,
            Kind::CharDevice(device) | Kind::BlockDevice(device) => {
                new.device = device_number(device.major, device.minor)?;
            }
            _ => {}
        }
        self.count(&entry.kind, &new);
        let mut trans = self.volume.begin()?;
        let mut parent = InodeGuard::new(parent);
        let mut inode = ops::create(&mut trans, &mut parent, name, &new)?;
        if !entry.xattrs.is_empty() {
            ops::set_attributes(&mut trans, &mut inode, xattrs(entry))?;
        }
        let mut map = None;
        if let Kind::Regular { size, data } = &entry.kind {
            let ranges = data.iter().map(|range| range.offset..range.end());
            let placement = &mut self.placement;
            map = Some(ops::allocate_file(&mut trans, &mut inode, *size, ranges, placement)?);
        }
        // The parent's inode is stored when it is left.
        trans.commit(&mut [&mut inode])?;
        if kind != FileType::Directory {
            self.volume.release_inode(inode);
        }
        Ok(map.filter(|map| !map.is_empty()))
    }

    /// Takes away the file that came before under a name.
    fn remove(&mut self, parent: &Arc<Inode>, name: &[u8]) -> Result<(), Error> {
        // Data on its way must not arrive in blocks that have another owner by then.
        self.writer.finish()?;
        let Removed { kind, bytes, is_last } = replaced::remove(self.volume, parent, name)?;
        let summary = &mut self.summary;
        let counter = match kind {
            _ if !is_last => &mut summary.hard_links,
            FileType::Regular => &mut summary.files,
            FileType::Symlink => &mut summary.symlinks,
            _ => &mut summary.specials,
        };
        *counter = counter.saturating_sub(1);
        summary.bytes = summary.bytes.saturating_sub(bytes);
        Ok(())
    }

    /// Gives a file a further name.
    fn link(&mut self, parent: &Arc<Inode>, name: &[u8], first: &EntryPath) -> Result<(), Error> {
        let number = self.find(first.as_bytes())?;
        self.summary.hard_links += 1;
        let mut trans = self.volume.begin()?;
        // Inodes are locked in ascending order.
        let own = parent.read().number;
        let lock = |number| self.volume.lock_inode(number);
        let (mut parent, mut inode) = if own < number {
            let parent = lock(own)?;
            (parent, lock(number)?)
        } else {
            let inode = lock(number)?;
            (lock(own)?, inode)
        };
        ops::add_link(&mut trans, &mut parent, name, &mut inode)?;
        trans.commit(&mut [&mut parent, &mut inode])
    }

    /// Gives a directory that exists the metadata of an entry.
    fn update_directory(&mut self, number: InodeNumber, entry: &Entry) -> Result<(), Error> {
        let new = new_inode(self.options, FileType::Directory, &entry.metadata);
        self.count_clamped(&new);
        self.remove_attributes(number, entry, new.times.change)?;
        let mut trans = self.volume.begin()?;
        let mut inode = self.volume.lock_inode(number)?;
        ops::set_metadata(&trans, &mut inode, &new);
        if !entry.xattrs.is_empty() {
            ops::set_attributes(&mut trans, &mut inode, xattrs(entry))?;
        }
        trans.commit(&mut [&mut inode])
    }

    /// Takes away the attributes that an earlier entry of a directory had, and this one has not.
    fn remove_attributes(
        &self,
        number: InodeNumber,
        entry: &Entry,
        now: Timestamp,
    ) -> Result<(), Error> {
        let before = ops::attributes(self.volume, &self.volume.inode(number)?.read())?;
        for (name, _) in before {
            if !is_property(&name) && entry.xattrs.iter().all(|xattr| xattr.name != name) {
                ops::remove_xattr(self.volume, number, &name, now)?;
            }
        }
        Ok(())
    }

    /// Sends the data of a file to its place.
    fn copy_data(
        &mut self,
        source: &mut dyn Source,
        map: FileMap,
        entry: &Entry,
    ) -> Result<(), PackError> {
        if let Some(lent) = source.lent_file()?
            && let Kind::Regular { data, .. } = &entry.kind
        {
            self.shares.send(&self.writer, map, lent, (&entry.path, data))?;
            let bytes = data.iter().map(|range| range.length).sum::<u64>();
            self.summary.bytes += bytes;
            self.progress.bytes += bytes;
            return Ok(());
        }
        let mut file = self.writer.file(map);
        while let Some(data) = source.next_data()? {
            let chunk = data.chunk;
            file.put(data.offset, chunk.buffer(), chunk.range())
                .map_err(|source| PackError::Entry { path: entry.path.to_string(), source })?;
            self.summary.bytes += chunk.len() as u64;
            self.progress.bytes += chunk.len() as u64;
        }
        file.finish();
        Ok(())
    }

    fn count(&mut self, kind: &Kind, new: &NewInode<'_>) {
        let counter = match kind {
            Kind::Regular { .. } => &mut self.summary.files,
            Kind::Directory => &mut self.summary.directories,
            Kind::Symlink(_) => &mut self.summary.symlinks,
            Kind::HardLink(_) => &mut self.summary.hard_links,
            Kind::CharDevice(_) | Kind::BlockDevice(_) | Kind::Fifo | Kind::Socket => {
                &mut self.summary.specials
            }
        };
        *counter += 1;
        self.count_clamped(new);
    }

    fn count_clamped(&mut self, new: &NewInode<'_>) {
        let encoding = time_encoding(self.volume);
        let time = new.times.modification;
        self.summary.clamped_times += u64::from(time.clamped(encoding) != time);
    }
}

fn xattrs(entry: &Entry) -> impl Iterator<Item = (&[u8], &[u8])> {
    entry.xattrs.iter().map(|xattr| (&xattr.name[..], &xattr.value[..]))
}

fn device_number(major: u32, minor: u32) -> Result<DeviceNumber, Error> {
    let device = DeviceNumber { major, minor };
    match device.encode() {
        Some(_) => Ok(device),
        None => Err(Error::Invalid(format!(
            "device {major}:{minor}: XFS stores majors below 16384 and minors below 262144"
        ))),
    }
}

/// How the volume holds times.
pub(super) fn time_encoding(volume: &Volume) -> TimestampEncoding {
    let bigtime = volume.geometry().features.bigtime();
    if bigtime { TimestampEncoding::Bigtime } else { TimestampEncoding::Legacy }
}

/// The type of an entry's inode: of a hard link, that of the file.
#[must_use]
pub fn file_type(kind: &Kind) -> FileType {
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::Regular { .. } | Kind::HardLink(_) => FileType::Regular,
        Kind::Symlink(_) => FileType::Symlink,
        Kind::CharDevice(_) => FileType::Character,
        Kind::BlockDevice(_) => FileType::Block,
        Kind::Fifo => FileType::Fifo,
        Kind::Socket => FileType::Socket,
    }
}

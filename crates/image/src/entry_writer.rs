//! Entries of a source put on a volume that is open for change, through its journal: each is a few
//! transactions.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use undercroft_fs::{Change, Existing, FileSystem, NewFile, Owner, PathError, SetMode, SetTime};
use undercroft_source::{Data, Device, Entry, EntryPath, Kind, SourceError};
use undercroft_xfs::Error as VolumeError;
use undercroft_xfs::format::{DeviceNumber, FileType, Timestamp};
use undercroft_xfs::mkfs::is_property;
use undercroft_xfs::units::InodeNumber;

/// Which side failed.
pub(crate) enum Fault {
    Source(SourceError),
    Volume(VolumeError),
}

impl From<SourceError> for Fault {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

impl From<VolumeError> for Fault {
    fn from(error: VolumeError) -> Self {
        Self::Volume(error)
    }
}

/// The next piece of data of the file that is written; `None` at its end.
pub(crate) type NextData<'d> = dyn FnMut() -> Result<Option<Data>, SourceError> + 'd;

/// Bytes that the volume has free.
pub(crate) fn free_bytes(fs: &FileSystem) -> Result<u64, VolumeError> {
    let usage = fs.statfs()?;
    Ok(usage.free_blocks.saturating_mul(usage.block_size.into()))
}

/// Writes entries below a directory of a volume.
pub(crate) struct EntryWriter<'a> {
    fs: &'a FileSystem,
    /// The directory that paths of entries start at, and its own path.
    top: InodeNumber,
    top_path: PathBuf,
    /// When directories say at the end that they were changed: as their entries say, or as before.
    times: BTreeMap<EntryPath, Timestamp>,
    /// Names that were taken away, with all that was below them.
    pub(crate) removed: u64,
    /// Bytes of data that were written.
    pub(crate) bytes: u64,
}

impl<'a> EntryWriter<'a> {
    pub(crate) fn new(fs: &'a FileSystem, top: InodeNumber, top_path: PathBuf) -> Self {
        Self { fs, top, top_path, times: BTreeMap::new(), removed: 0, bytes: 0 }
    }

    /// The inode at a path and its kind; symbolic links are not followed.
    pub(crate) fn find(
        &self,
        path: &EntryPath,
    ) -> Result<Option<(InodeNumber, FileType)>, VolumeError> {
        let mut at = (self.top, FileType::Directory);
        for name in path.components() {
            if at.1 != FileType::Directory {
                return Ok(None);
            }
            match self.fs.nodes().lookup(at.0, name) {
                Ok(found) => at = (found.number, found.kind),
                Err(VolumeError::NotFound(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(at))
    }

    /// Takes away a name that is there, with all that is below it.
    pub(crate) fn remove(&mut self, path: &EntryPath) -> Result<(), VolumeError> {
        let (parent, name) = self.open_parent(path)?;
        self.removed += 1;
        // Times of directories that are gone are not set.
        self.times.retain(|directory, _| !is_within(directory, path));
        if self.fs.nodes().lookup(parent, name)?.is_dir() {
            self.fs.remove_dir_all(self.path_of(path)).map_err(PathError::into_error)
        } else {
            self.fs.nodes().unlink(parent, name).map(drop)
        }
    }

    /// The names in a directory, as paths.
    pub(crate) fn names(&self, path: &EntryPath) -> Result<Vec<EntryPath>, VolumeError> {
        let names = self.fs.read_dir(self.path_of(path)).map_err(PathError::into_error)?;
        let paths = names.map(|entry| Ok(path.join(entry?.file_name().as_encoded_bytes())));
        paths.collect::<Result<_, PathError>>().map_err(PathError::into_error)
    }

    /// Makes a new inode under the name of an entry, in the place of what is there.
    pub(crate) fn replace(&mut self, entry: &Entry, data: &mut NextData<'_>) -> Result<(), Fault> {
        if self.find(&entry.path)?.is_some() {
            self.remove(&entry.path)?;
        }
        let (parent, name) = self.open_parent(&entry.path)?;
        let number = self.make(parent, name, entry)?;
        if let Kind::Regular { size, .. } = &entry.kind {
            self.fill(number, *size, data)?;
        }
        Ok(self.set_metadata(number, entry)?)
    }

    /// Gives a file a further name, in the place of what has it.
    pub(crate) fn link(&mut self, path: &EntryPath, target: &EntryPath) -> Result<(), VolumeError> {
        let found = self.find(target)?;
        let (number, _) = found.ok_or_else(|| VolumeError::NotFound(target.to_string()))?;
        // Held, so that it stays when the name that is replaced was its last.
        let held = self.fs.nodes().open(number)?;
        if self.find(path)?.is_some() {
            self.remove(path)?;
        }
        let (parent, name) = self.open_parent(path)?;
        self.fs.nodes().link_file(&held, parent, name).map(drop)
    }

    /// Gives an inode the metadata of an entry and no other attributes.
    pub(crate) fn set_metadata(
        &mut self,
        number: InodeNumber,
        entry: &Entry,
    ) -> Result<(), VolumeError> {
        let fs = self.fs;
        for name in fs.nodes().list_xattrs(number)? {
            if entry.xattrs.iter().all(|xattr| xattr.name != name) && !is_property(&name) {
                fs.nodes().remove_xattr(number, &name)?;
            }
        }
        let metadata = &entry.metadata;
        let modified =
            Timestamp { seconds: metadata.mtime.seconds, nanoseconds: metadata.mtime.nanoseconds };
        let is_symlink = matches!(entry.kind, Kind::Symlink(_));
        let change = Change {
            // The mode of a link has no meaning.
            mode: (!is_symlink).then_some(metadata.mode),
            uid: Some(metadata.uid),
            gid: Some(metadata.gid),
            ..Change::default()
        };
        fs.nodes().set_attributes(number, &change)?;
        // Capabilities go when the owner changes, so attributes come later.
        for xattr in &entry.xattrs {
            fs.nodes().set_xattr(number, &xattr.name, &xattr.value, SetMode::Either)?;
        }
        let time = Some(SetTime::To(modified));
        fs.nodes().set_attributes(
            number,
            &Change { modified: time, accessed: time, ..Change::default() },
        )?;
        if entry.kind == Kind::Directory {
            self.times.insert(entry.path.clone(), modified);
        }
        Ok(())
    }

    /// Gives directories that changed their times. An error names its directory.
    pub(crate) fn set_times(&self) -> Result<(), (EntryPath, VolumeError)> {
        for (path, modified) in &self.times {
            let set = || {
                let Some((number, _)) = self.find(path)? else { return Ok(()) };
                let modified = Some(SetTime::To(*modified));
                let change = Change { modified, ..Change::default() };
                self.fs.nodes().set_attributes(number, &change).map(drop)
            };
            set().map_err(|error| (path.clone(), error))?;
        }
        Ok(())
    }

    /// The directory that a path is in, which is about to change, and the name in it.
    fn open_parent<'p>(
        &mut self,
        path: &'p EntryPath,
    ) -> Result<(InodeNumber, &'p [u8]), VolumeError> {
        let missing = || VolumeError::NotFound(path.to_string());
        let (_, name) = path.split_last().ok_or_else(missing)?;
        let parent = path.parent().ok_or_else(missing)?;
        let (number, _) = self.find(&parent)?.ok_or_else(missing)?;
        if !self.times.contains_key(&parent) {
            let modified = self.fs.nodes().stat(number)?.modified;
            self.times.insert(parent, modified);
        }
        Ok((number, name))
    }

    fn make(
        &self,
        parent: InodeNumber,
        name: &[u8],
        entry: &Entry,
    ) -> Result<InodeNumber, VolumeError> {
        let metadata = &entry.metadata;
        let owner = Owner { uid: metadata.uid, gid: metadata.gid };
        let new = NewFile { mode: metadata.mode, owner };
        let nodes = self.fs.nodes();
        let node = |kind, device| nodes.mknod(parent, name, kind, device, &new);
        let number = |device: &Device| DeviceNumber { major: device.major, minor: device.minor };
        let none = DeviceNumber::default();
        let made = match &entry.kind {
            Kind::Directory => nodes.mkdir(parent, name, &new)?,
            Kind::Regular { .. } | Kind::HardLink(_) => {
                nodes.create(parent, name, &new, Existing::Refuse)?.0
            }
            Kind::Symlink(target) => nodes.symlink(parent, name, target, owner)?,
            Kind::CharDevice(device) => node(FileType::Character, number(device))?,
            Kind::BlockDevice(device) => node(FileType::Block, number(device))?,
            Kind::Fifo => node(FileType::Fifo, none)?,
            Kind::Socket => node(FileType::Socket, none)?,
        };
        Ok(made.number)
    }

    /// Writes the data of a new file, and leaves its holes out.
    fn fill(
        &mut self,
        number: InodeNumber,
        size: u64,
        data: &mut NextData<'_>,
    ) -> Result<(), Fault> {
        let file = self.fs.nodes().open(number)?;
        while let Some(data) = data()? {
            let (buffer, range) = (data.chunk.buffer(), data.chunk.range());
            // Past memory: a source is read once, and times that are set later stay.
            file.open_file().write_direct(data.offset, buffer, range, self.fs.now())?;
            self.bytes += data.chunk.len() as u64;
        }
        // A hole at the end.
        if file.size() < size {
            file.set_len(size)?;
        }
        Ok(())
    }

    /// A path as the file system takes it.
    fn path_of(&self, path: &EntryPath) -> PathBuf {
        self.top_path.join(OsStr::from_bytes(path.as_bytes()))
    }
}

/// Whether a path is another one, or below it.
fn is_within(path: &EntryPath, other: &EntryPath) -> bool {
    let rest = path.as_bytes().strip_prefix(other.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

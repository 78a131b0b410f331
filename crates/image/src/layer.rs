//! One more layer on a volume that exists: through its journal, with what the layer hides taken
//! away.
//!
//! The layer is read once before anything changes, so a layer that cannot be read, or that links to
//! what is not there, changes nothing. Then what it hides goes, and its entries come in the order of
//! the archive; each is a few transactions. The whole is none: what fails on the way, or a crash,
//! leaves a sound volume with a part of the layer.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use undercroft_fs::{Change, Existing, FileSystem, NewFile, Owner, PathError, SetMode, SetTime};
use undercroft_source::oci::{LayerEntry, LayerSource, Mark};
use undercroft_source::{Entry, EntryPath, Kind, SourceError, Warnings};
use undercroft_xfs::Error as VolumeError;
use undercroft_xfs::format::{DeviceNumber, FileType, Timestamp};
use undercroft_xfs::mkfs::is_property;
use undercroft_xfs::units::InodeNumber;

/// Why a layer could not be put on a volume.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The layer cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A hard link of the layer names a file that is not there, or that the layer hides.
    #[error("the layer has a hard link to {target}, which {reason}; nothing was changed")]
    Link {
        /// The file.
        target: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The volume does not have the space.
    #[error(
        "the layer has {needed} bytes of data, the volume has {free} bytes free; nothing was changed: make the volume larger"
    )]
    NoRoom {
        /// Bytes of data in the layer.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// An entry cannot be stored. Those before it are on the volume.
    #[error("cannot store {path}; the volume holds a part of the layer")]
    Entry {
        /// Its path, escaped.
        path: String,
        /// Why not.
        source: VolumeError,
    },
    /// The volume cannot be read.
    #[error("cannot read the volume")]
    Volume(#[source] VolumeError),
}

/// What was done.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LayerSummary {
    /// Names that the layer took away, with all that was below them.
    pub removed: u64,
    /// Entries that it brought.
    pub entries: u64,
    /// Bytes of data that it brought.
    pub bytes: u64,
    /// The warnings of the archive.
    pub warnings: Warnings,
}

/// Puts a layer on a volume that is open for change. `progress` gets entries and bytes so far.
///
/// # Errors
/// See [`LayerError`].
pub fn apply(
    fs: &FileSystem,
    layer: &mut LayerSource,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<LayerSummary, LayerError> {
    let mut applying = Applying { fs, times: BTreeMap::new(), summary: LayerSummary::default() };
    applying.check(layer)?;
    for mark in layer.marks() {
        let path = match &mark {
            Mark::Whiteout(path) | Mark::Opaque(path) => path.clone(),
        };
        applying.hide(&mark).map_err(|source| at(&path, source))?;
    }
    while let Some(LayerEntry { entry, is_implicit }) = layer.next_entry()? {
        applying.store(layer, &entry, is_implicit)?;
        applying.summary.entries += u64::from(!is_implicit);
        progress(applying.summary.entries, applying.summary.bytes);
    }
    let removed = applying.summary.removed;
    for path in layer.leftovers() {
        let mark = Mark::Whiteout(path.clone());
        applying.hide(&mark).map_err(|source| at(path, source))?;
    }
    applying.summary.removed = removed;
    applying.set_times()?;
    applying.summary.warnings = layer.warnings();
    Ok(applying.summary)
}

fn at(path: &EntryPath, source: VolumeError) -> LayerError {
    LayerError::Entry { path: path.to_string(), source }
}

struct Applying<'a> {
    fs: &'a FileSystem,
    /// When directories say at the end that they were changed: as their entries say, or as before.
    times: BTreeMap<EntryPath, Timestamp>,
    summary: LayerSummary,
}

impl Applying<'_> {
    /// Finds what speaks against the layer before anything is changed.
    fn check(&self, layer: &LayerSource) -> Result<(), LayerError> {
        for (target, is_hidden) in layer.links_below() {
            let found = self.find(&target).map_err(LayerError::Volume)?;
            let reason = match found {
                None => "neither the layer has before it, nor the volume",
                Some(_) if is_hidden => "the layer hides",
                Some((_, FileType::Directory)) => "is a directory",
                Some(_) => continue,
            };
            return Err(LayerError::Link { target: target.to_string(), reason });
        }
        let (needed, _) = layer.content();
        let usage = self.fs.statfs().map_err(LayerError::Volume)?;
        let free = usage.free_blocks.saturating_mul(usage.block_size.into());
        if needed > free {
            return Err(LayerError::NoRoom { needed, free });
        }
        Ok(())
    }

    /// The inode at a path and its kind; symbolic links are not followed.
    fn find(&self, path: &EntryPath) -> Result<Option<(InodeNumber, FileType)>, VolumeError> {
        let mut at = (self.fs.root(), FileType::Directory);
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

    /// Takes away what a mark hides.
    fn hide(&mut self, mark: &Mark) -> Result<(), VolumeError> {
        match mark {
            Mark::Whiteout(path) => {
                let is_there = self.find(path)?.is_some();
                if is_there {
                    self.remove(path)?;
                }
            }
            Mark::Opaque(path) => {
                let Some((_, FileType::Directory)) = self.find(path)? else { return Ok(()) };
                let names = self.fs.read_dir(path_of(path)).map_err(PathError::into_error)?;
                let names: Vec<_> = names
                    .map(|entry| Ok(path.join(entry?.file_name().as_encoded_bytes())))
                    .collect::<Result<_, PathError>>()
                    .map_err(PathError::into_error)?;
                for name in names {
                    self.remove(&name)?;
                }
            }
        }
        Ok(())
    }

    /// Takes away a name that is there, with all that is below it.
    fn remove(&mut self, path: &EntryPath) -> Result<(), VolumeError> {
        let (parent, name) = self.open_parent(path)?;
        self.summary.removed += 1;
        // Times of directories that are gone are not set.
        self.times.retain(|directory, _| !is_within(directory, path));
        if self.fs.nodes().lookup(parent, name)?.is_dir() {
            self.fs.remove_dir_all(path_of(path)).map_err(PathError::into_error)
        } else {
            self.fs.nodes().unlink(parent, name).map(drop)
        }
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

    /// Stores one entry.
    fn store(
        &mut self,
        layer: &mut LayerSource,
        entry: &Entry,
        is_implicit: bool,
    ) -> Result<(), LayerError> {
        let there = self.find(&entry.path).map_err(LayerError::Volume)?;
        let result = match (&entry.kind, there) {
            (Kind::Directory, Some((_, FileType::Directory))) if is_implicit => Ok(()),
            (Kind::Directory, Some((number, FileType::Directory))) => {
                self.set_metadata(number, entry)
            }
            (Kind::HardLink(target), there) => self.link(entry, target, there.is_some()),
            (_, there) => self.replace(layer, entry, there.is_some())?,
        };
        result.map_err(|source| at(&entry.path, source))
    }

    /// Gives a file a further name.
    fn link(
        &mut self,
        entry: &Entry,
        target: &EntryPath,
        is_there: bool,
    ) -> Result<(), VolumeError> {
        let found = self.find(target)?;
        let (number, _) = found.ok_or_else(|| VolumeError::NotFound(target.to_string()))?;
        // Held, so that it stays when the name that is replaced was its last.
        let held = self.fs.nodes().open(number)?;
        if is_there {
            self.remove(&entry.path)?;
        }
        let (parent, name) = self.open_parent(&entry.path)?;
        self.fs.nodes().link_file(&held, parent, name).map(drop)
    }

    /// Makes a new inode under the name of an entry, in the place of what is there.
    fn replace(
        &mut self,
        layer: &mut LayerSource,
        entry: &Entry,
        is_there: bool,
    ) -> Result<Result<(), VolumeError>, LayerError> {
        let made = (|| {
            if is_there {
                self.remove(&entry.path)?;
            }
            let (parent, name) = self.open_parent(&entry.path)?;
            self.make(parent, name, entry)
        })();
        let number = match made {
            Ok(number) => number,
            Err(error) => return Ok(Err(error)),
        };
        if let Kind::Regular { size, .. } = &entry.kind {
            let file = match self.fs.nodes().open(number) {
                Ok(file) => file,
                Err(error) => return Ok(Err(error)),
            };
            while let Some(data) = layer.next_data()? {
                let (buffer, range) = (data.chunk.buffer(), data.chunk.range());
                // Past memory: a layer is read once, and times that are set later stay.
                let now = self.fs.now();
                if let Err(error) = file.open_file().write_direct(data.offset, buffer, range, now) {
                    return Ok(Err(error));
                }
                self.summary.bytes += data.chunk.len() as u64;
            }
            // A hole at the end.
            if file.size() < *size
                && let Err(error) = file.set_len(*size)
            {
                return Ok(Err(error));
            }
        }
        Ok(self.set_metadata(number, entry))
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
        let fs = self.fs;
        let node = |kind, device| fs.nodes().mknod(parent, name, kind, device, &new);
        let none = DeviceNumber { major: 0, minor: 0 };
        let made = match &entry.kind {
            Kind::Directory => fs.nodes().mkdir(parent, name, &new)?,
            Kind::Regular { .. } | Kind::HardLink(_) => {
                fs.nodes().create(parent, name, &new, Existing::Refuse)?.0
            }
            Kind::Symlink(target) => fs.nodes().symlink(parent, name, target, owner)?,
            Kind::CharDevice(device) => node(
                FileType::Character,
                DeviceNumber { major: device.major, minor: device.minor },
            )?,
            Kind::BlockDevice(device) => {
                node(FileType::Block, DeviceNumber { major: device.major, minor: device.minor })?
            }
            Kind::Fifo => node(FileType::Fifo, none)?,
            Kind::Socket => node(FileType::Socket, none)?,
        };
        Ok(made.number)
    }

    /// Gives an inode the metadata of an entry and no other attributes.
    fn set_metadata(&mut self, number: InodeNumber, entry: &Entry) -> Result<(), VolumeError> {
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

    /// Gives directories that changed their times.
    fn set_times(&self) -> Result<(), LayerError> {
        for (path, modified) in &self.times {
            let set = || {
                let Some((number, _)) = self.find(path)? else { return Ok(()) };
                let modified = Some(SetTime::To(*modified));
                self.fs
                    .nodes()
                    .set_attributes(number, &Change { modified, ..Change::default() })
                    .map(drop)
            };
            set().map_err(|source| at(path, source))?;
        }
        Ok(())
    }
}

/// A path as the file system takes it.
fn path_of(path: &EntryPath) -> PathBuf {
    Path::new("/").join(OsStr::from_bytes(path.as_bytes()))
}

/// Whether a path is another one, or below it.
fn is_within(path: &EntryPath, other: &EntryPath) -> bool {
    let rest = path.as_bytes().strip_prefix(other.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

//! One file of an image on its way.

use crate::in_use::mounted_at;
use crate::pack::PackError;
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use undercroft_block::stack::FileLeaf;

/// A file of the image: without a name until the image is whole, or a block device.
#[derive(Debug)]
pub(super) struct TargetFile {
    pub(super) path: PathBuf,
    pub(super) place: Place,
    pub(super) identity: Identity,
}

/// What is written to.
#[derive(Debug)]
pub(super) enum Place {
    /// A file without a name: it vanishes when the process does.
    Anonymous { file: File, replace: bool },
    /// A file with a name of its own, where the file system knows no others.
    Named { file: NamedTempFile, replace: bool },
    /// A block device, written in place.
    Device { file: File, bytes: u64 },
}

/// What tells two files apart, whatever their paths are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Identity {
    Device(u64),
    File {
        device: u64,
        inode: u64,
    },
    /// Yet to be made: its name in a directory.
    Name {
        device: u64,
        inode: u64,
        name: OsString,
    },
}

impl TargetFile {
    /// Opens a target for a file.
    ///
    /// # Errors
    /// It exists and `force` is not set, it is mounted, or it cannot be written.
    pub(super) fn open(leaf: &FileLeaf, force: bool) -> Result<Self, PackError> {
        let path = &leaf.path;
        let failed =
            |action| move |source| PackError::Target { action, image: path.clone(), source };
        let existing = match path.metadata() {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed("look at")(error)),
        };
        let Some(metadata) = existing else {
            let place = new_file(path, false)?;
            let identity = Identity::of_new(path).map_err(failed("look at the directory of"))?;
            return Ok(Self { path: path.clone(), place, identity });
        };
        if let Some(mounted_at) = mounted_at(path, &metadata) {
            return Err(PackError::Mounted { image: path.clone(), mounted_at });
        }
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let what = if kind.is_dir() { "a directory" } else { "a special file" };
            return Err(PackError::WrongTarget { image: path.clone(), what });
        }
        if !force {
            return Err(PackError::Exists(path.clone()));
        }
        let place = if kind.is_file() { new_file(path, true)? } else { open_device(path)? };
        Ok(Self { path: path.clone(), place, identity: Identity::of(&metadata) })
    }

    /// Length in bytes, if it has one already.
    pub(super) fn fixed_size(&self) -> Option<u64> {
        match self.place {
            Place::Device { bytes, .. } => Some(bytes),
            Place::Anonymous { .. } | Place::Named { .. } => None,
        }
    }

    /// The open file, of `bytes` bytes. One that is not a block device becomes empty first.
    pub(super) fn sized(&self, bytes: u64) -> Result<File, PackError> {
        let (file, grow) = match &self.place {
            Place::Anonymous { file, .. } => (file.try_clone(), true),
            Place::Named { file, .. } => (file.as_file().try_clone(), true),
            Place::Device { file, .. } => (file.try_clone(), false),
        };
        let failed =
            |action| move |source| PackError::Target { action, image: self.path.clone(), source };
        let file = file.map_err(failed("open"))?;
        if grow {
            // Only what an earlier attempt left is cut off: ext4 writes out a file that was cut to
            // nothing when it is closed, and the command would wait for all of that.
            let emptied = file.metadata().and_then(|metadata| match metadata.len() {
                0 => Ok(()),
                _ => file.set_len(0),
            });
            emptied.and_then(|()| file.set_len(bytes)).map_err(failed("set the length of"))?;
        }
        Ok(file)
    }
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        if metadata.file_type().is_block_device() {
            Self::Device(metadata.rdev())
        } else {
            Self::File { device: metadata.dev(), inode: metadata.ino() }
        }
    }

    fn of_new(path: &Path) -> io::Result<Self> {
        let directory = directory_of(path).metadata()?;
        let (device, inode) = (directory.dev(), directory.ino());
        let name = path.file_name().unwrap_or_default().to_owned();
        Ok(Self::Name { device, inode, name })
    }
}

pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Opens a block device for this process alone, so that nobody mounts it meanwhile.
fn open_device(image: &Path) -> Result<Place, PackError> {
    let failed = |action| move |source| PackError::Target { action, image: image.into(), source };
    // For a block device this flag, without CREATE, asks that nobody else holds it.
    let exclusive = OFlags::EXCL.bits().cast_signed();
    let opened = File::options().read(true).write(true).custom_flags(exclusive).open(image);
    let mut file = opened.map_err(|source| match source.kind() {
        io::ErrorKind::ResourceBusy => PackError::InUse(image.to_owned()),
        _ => failed("open")(source),
    })?;
    let bytes = io::Seek::seek(&mut file, io::SeekFrom::End(0)).map_err(failed("measure"))?;
    Ok(Place::Device { file, bytes })
}

/// A new file beside where the image will be.
fn new_file(image: &Path, replace: bool) -> Result<Place, PackError> {
    let directory = directory_of(image);
    let failed = |source| PackError::Target { action: "create", image: image.to_owned(), source };
    let mode = Mode::from_raw_mode(0o666);
    match rustix::fs::openat(CWD, directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode)
    {
        Ok(file) => Ok(Place::Anonymous { file: File::from(file), replace }),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
            let file = super::naming::temporary().tempfile_in(directory).map_err(failed)?;
            Ok(Place::Named { file, replace })
        }
        Err(error) => Err(failed(error.into())),
    }
}

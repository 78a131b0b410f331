//! One file of an image on its way, or one device that is written in place.

use super::contents;
use super::link::can_be_named;
use super::qcow2;
use crate::pack::PackError;
use rustix::fs::{CWD, Mode, OFlags, ioctl_blksszget};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;
use undercroft_block::stack::{FileLeaf, LeafDescription, LeafOptions, NetworkLeaf};
use undercroft_block::{BlockDevice, Engine, Exclusive, FileDevice, FileOptions, SECTOR_SIZE};

/// A file of the image: without a name until the image is whole, or a block device, or a network
/// disk, whose path is its URI.
#[derive(Debug)]
pub(super) struct TargetFile {
    pub(super) path: PathBuf,
    pub(super) place: TargetKind,
    pub(super) identity: Identity,
    /// The right to replace the file that has the name now.
    _old: Option<Exclusive>,
}

/// The kind of the target that is written.
#[derive(Debug)]
pub(super) enum TargetKind {
    /// A file without a name: it vanishes when the process does.
    Anonymous { file: File, replace: bool },
    /// A file with a temporary name, where the file system knows no others, or where the system
    /// offers no way to name one later (no /proc, and Linux before 6.10). It goes when the build
    /// fails, but not when the process is killed.
    Named { file: NamedTempFile, replace: bool },
    /// A block device or a network disk, written in place.
    Device(Arc<dyn BlockDevice>),
}

/// The identity of a file, independent of its path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Identity {
    Device(u64),
    Network(String),
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
    /// Opens a target for a leaf of the image.
    ///
    /// # Errors
    /// It is a file that exists, or a device that holds something, and `force` is not set; it is in
    /// use, or cannot be written.
    pub(super) fn open(leaf: LeafDescription<'_>, force: bool) -> Result<Self, PackError> {
        match leaf {
            LeafDescription::File(file) => Self::open_file(file, force),
            LeafDescription::Network(network) => Self::open_network(network, force),
        }
    }

    fn open_network(leaf: &NetworkLeaf, force: bool) -> Result<Self, PackError> {
        let device = leaf.open(LeafOptions::default())?;
        let path = PathBuf::from(&leaf.uri);
        if !force {
            expect_empty(&path, device.as_ref())?;
        }
        let identity = Identity::Network(leaf.uri.clone());
        Ok(Self { path, place: TargetKind::Device(device), identity, _old: None })
    }

    fn open_file(leaf: &FileLeaf, force: bool) -> Result<Self, PackError> {
        // The target of a link is replaced, not the link, as `cp` does.
        let path = &behind_link(&leaf.path)?;
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
            return Ok(Self { path: path.clone(), place, identity, _old: None });
        };
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let what = if kind.is_dir() { "a directory" } else { "a special file" };
            return Err(PackError::WrongTarget { image: path.clone(), what });
        }
        // Whether it is in use is checked first, with `force`, too.
        let (device, old) = if kind.is_file() {
            let old = File::open(path).map_err(failed("open"))?;
            (None, Some(Exclusive::claim(old, &path.display().to_string())?.1))
        } else {
            (Some(FileDevice::open_with(path, &leaf.device_options(false))?), None)
        };
        match &device {
            _ if force => {}
            None => return Err(PackError::Exists(path.clone())),
            Some(device) => expect_empty(path, device)?,
        }
        let identity = Identity::of(&metadata);
        let place = match device {
            Some(device) => TargetKind::Device(Arc::new(device)),
            None => new_file(path, true)?,
        };
        Ok(Self { path: path.clone(), place, identity, _old: old })
    }

    /// Length in bytes, if it has one already.
    pub(super) fn fixed_size(&self) -> Option<u64> {
        match &self.place {
            // Fewer than 2^64, as the operating system counts them.
            TargetKind::Device(device) => device.capacity().to_bytes(),
            TargetKind::Anonymous { .. } | TargetKind::Named { .. } => None,
        }
    }

    /// Bytes of a block of the disk; a file has none of its own.
    pub(super) fn block_size(&self) -> u64 {
        let TargetKind::Device(device) = &self.place else { return SECTOR_SIZE };
        if let Identity::Network(_) = self.identity {
            return device.limits().block_bytes;
        }
        let size = File::open(&self.path).ok().and_then(|disk| ioctl_blksszget(disk).ok());
        size.map_or(SECTOR_SIZE, u64::from)
    }

    /// The file that gets the name; none for a block device.
    fn file(&self) -> Option<&File> {
        match &self.place {
            TargetKind::Anonymous { file, .. } => Some(file),
            TargetKind::Named { file, .. } => Some(file.as_file()),
            TargetKind::Device(_) => None,
        }
    }

    /// Makes the file a qcow2 of the bytes of `raw`.
    pub(super) fn convert(
        &self,
        raw: &File,
        durable: bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), PackError> {
        let Some(file) = self.file() else { return Ok(()) };
        let converted = qcow2::to_qcow2(raw, file, progress);
        let synced = converted.and_then(|()| if durable { file.sync_all() } else { Ok(()) });
        synced.map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull => {
                PackError::HostFull { image: self.path.display().to_string() }
            }
            _ => PackError::Target { action: "write", image: self.path.clone(), source },
        })
    }

    /// The file as a device of `bytes` bytes, or `raw` in its place. One that is not a device already
    /// becomes empty first.
    pub(super) fn device(
        &self,
        leaf: LeafDescription<'_>,
        bytes: u64,
        raw: Option<&File>,
    ) -> Result<Arc<dyn BlockDevice>, PackError> {
        let file = match (&self.place, raw) {
            (TargetKind::Device(device), _) => {
                return Ok(Arc::clone(device));
            }
            (TargetKind::Anonymous { .. } | TargetKind::Named { .. }, Some(raw)) => raw,
            (TargetKind::Anonymous { file, .. }, None) => file,
            (TargetKind::Named { file, .. }, None) => file.as_file(),
        };
        let failed =
            |action| move |source| PackError::Target { action, image: self.path.clone(), source };
        let file = file.try_clone().map_err(failed("open"))?;
        // Only what an earlier attempt left is cut off: ext4 writes out a file that was cut to
        // nothing when it is closed, and the command would wait for all of that.
        let emptied = file.metadata().and_then(|metadata| match metadata.len() {
            0 => Ok(()),
            _ => file.set_len(0),
        });
        emptied.and_then(|()| file.set_len(bytes)).map_err(failed("set the length of"))?;
        let mut options = match leaf {
            LeafDescription::File(leaf) => leaf.device_options(false),
            LeafDescription::Network(_) => FileOptions::default(),
        };
        // File systems let one writer into the page cache of a file at a time: a second only waits.
        // Around it there is room for others.
        options.threads = 1;
        if options.engine == Engine::Auto {
            options.engine = Engine::Mixed;
        }
        let name = self.path.display().to_string();
        Ok(Arc::new(FileDevice::from_file(file, &name, &options)?))
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

/// Fails if something is known to be on a device.
fn expect_empty(path: &Path, device: &dyn BlockDevice) -> Result<(), PackError> {
    match contents::of(device).map_err(|error| PackError::volume(error.into()))? {
        Some(what) => Err(PackError::Holds { image: path.to_owned(), what }),
        None => Ok(()),
    }
}

pub(super) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Where a path leads if it is a symbolic link; else the path.
fn behind_link(path: &Path) -> Result<PathBuf, PackError> {
    if !path.is_symlink() {
        return Ok(path.to_owned());
    }
    path.canonicalize().map_err(|source| match (source.kind(), path.read_link()) {
        (io::ErrorKind::NotFound, Ok(to)) => PackError::DanglingLink { link: path.into(), to },
        _ => PackError::Target { action: "follow", image: path.into(), source },
    })
}

/// Maker of files that exist until the image is whole.
pub(super) fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".undercroft-").suffix(".partial");
    builder
}

/// A file without a name beside where the image will be.
pub(super) fn scratch(image: &Path) -> Result<File, PackError> {
    let failed = |source| PackError::Target { action: "create", image: image.to_owned(), source };
    tempfile::tempfile_in(directory_of(image)).map_err(failed)
}

/// A new file beside where the image will be.
fn new_file(image: &Path, replace: bool) -> Result<TargetKind, PackError> {
    let directory = directory_of(image);
    let failed = |source| PackError::Target { action: "create", image: image.to_owned(), source };
    let mode = Mode::from_raw_mode(0o666);
    match rustix::fs::openat(CWD, directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode)
    {
        Ok(file) => {
            let file = File::from(file);
            if can_be_named(&file, directory) {
                return Ok(TargetKind::Anonymous { file, replace });
            }
        }
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
        }
        Err(error) => return Err(failed(error.into())),
    }
    let file = temporary().tempfile_in(directory).map_err(failed)?;
    Ok(TargetKind::Named { file, replace })
}

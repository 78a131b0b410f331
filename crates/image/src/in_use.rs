//! Whether a file or device is in use: mounted, or open for change.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;
use undercroft_block::stack::{Description, StackError};

/// Why an image cannot be changed now.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InUse {
    /// The kernel has it.
    #[error("{} is mounted at {mounted_at}; unmount it first", image.display())]
    Mounted {
        /// File or device.
        image: PathBuf,
        /// Where.
        mounted_at: String,
    },
    /// Another program changes it.
    #[error("{} is in use by another program; wait until that is done", image.display())]
    Locked {
        /// File or device.
        image: PathBuf,
    },
    /// A file of it is there twice.
    #[error(transparent)]
    Twice(#[from] StackError),
    /// It cannot be opened.
    #[error("cannot open {}", image.display())]
    Open {
        /// File or device.
        image: PathBuf,
        /// Answer of the operating system.
        source: io::Error,
    },
}

/// The right to change an image, as long as it lives: nobody else who asks for it gets it, and the
/// kernel does not mount a device.
#[derive(Debug)]
pub struct Exclusive {
    _files: Vec<File>,
}

impl Exclusive {
    /// Claims all files and devices that an image is made of.
    ///
    /// Files are claimed by an advisory lock (`flock`), devices by opening them exclusively, as a
    /// mount does.
    ///
    /// # Errors
    /// One of them is mounted, or claimed by somebody else, or there twice, or cannot be opened.
    pub fn claim(image: &Description) -> Result<Self, InUse> {
        // The second claim of a file would find it in use, by ourselves.
        image.check_distinct()?;
        let files = image.files().into_iter().map(|leaf| claim(&leaf.path));
        Ok(Self { _files: files.collect::<Result<_, _>>()? })
    }
}

fn claim(path: &Path) -> Result<File, InUse> {
    let image = || path.to_owned();
    let failed = |source| InUse::Open { image: image(), source };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if let Some(mounted_at) = mounted_at(path, &metadata) {
        return Err(InUse::Mounted { image: image(), mounted_at });
    }
    let kind = metadata.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        // To open a pipe is to wait for its other end.
        let what = "neither a regular file nor a block device";
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, what)));
    }
    let mut options = File::options();
    options.read(true);
    if metadata.file_type().is_block_device() {
        // The kernel lets one holder in: a mount, an array, swap, or this.
        options.custom_flags(rustix::fs::OFlags::EXCL.bits().cast_signed());
    }
    let file = options.open(path).map_err(|source| {
        match source.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::BUSY) => InUse::Locked { image: image() },
            _ => failed(source),
        }
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(InUse::Locked { image: image() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// Where a target is mounted: itself, or through a loop device over it.
#[must_use]
pub fn mounted_at(image: &Path, metadata: &std::fs::Metadata) -> Option<String> {
    let mut devices = Vec::new();
    if metadata.file_type().is_block_device() {
        devices.push(metadata.rdev());
    } else if let Ok(image) = image.canonicalize() {
        devices.extend(loop_devices(&image));
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        // Fields: id, parent, major:minor, root, mount point, ...
        let mut fields = line.split(' ').skip(2);
        let (major, minor) = fields.next()?.split_once(':')?;
        let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        let mount_point = fields.nth(1)?;
        devices.contains(&device).then(|| mount_point.to_owned())
    })
}

/// Loop devices whose backing file is `image`.
fn loop_devices(image: &Path) -> Vec<u64> {
    let Ok(entries) = std::fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    let backed = entries.flatten().filter(|entry| {
        std::fs::read_to_string(entry.path().join("loop/backing_file"))
            .is_ok_and(|backing| Path::new(backing.trim_end_matches('\n')) == image)
    });
    backed
        .filter_map(|entry| {
            let device = std::fs::read_to_string(entry.path().join("dev")).ok()?;
            let (major, minor) = device.trim().split_once(':')?;
            Some(rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?))
        })
        .collect()
}

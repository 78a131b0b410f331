//! The image on its way: a file without a name until it is whole, or a block device.

use super::PackError;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;
use undercroft_block::{BlockDevice, FileDevice, FileOptions};

/// Where an image goes.
#[derive(Debug)]
pub(super) struct Target {
    image: PathBuf,
    file: Place,
}

/// What is written to.
#[derive(Debug)]
enum Place {
    /// A file without a name: it vanishes when the process does.
    Anonymous { file: File, replace: bool },
    /// A file with a name of its own, where the file system knows no others.
    Named { file: NamedTempFile, replace: bool },
    /// A block device, written in place.
    Device { file: File, bytes: u64 },
}

impl Target {
    /// Opens a target for an image.
    ///
    /// # Errors
    /// It exists and `force` is not set, it is mounted, or it cannot be written.
    pub(super) fn open(image: &Path, force: bool) -> Result<Self, PackError> {
        let failed =
            |action| move |source| PackError::Target { action, image: image.to_owned(), source };
        let existing = match image.metadata() {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed("look at")(error)),
        };
        let Some(metadata) = existing else {
            return Ok(Self { image: image.to_owned(), file: new_file(image, false)? });
        };
        if let Some(mounted_at) = mounted_at(image, &metadata) {
            return Err(PackError::Mounted { image: image.to_owned(), mounted_at });
        }
        let kind = metadata.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let what = if kind.is_dir() { "a directory" } else { "a special file" };
            return Err(PackError::WrongTarget { image: image.to_owned(), what });
        }
        if !force {
            return Err(PackError::Exists(image.to_owned()));
        }
        let file = if kind.is_file() { new_file(image, true)? } else { open_device(image)? };
        Ok(Self { image: image.to_owned(), file })
    }

    /// Names under which the image, or what it replaces, can be seen.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        let mut names = vec![self.image.clone()];
        if let Place::Named { file, .. } = &self.file {
            names.push(file.path().to_owned());
        }
        names
    }

    /// Length of a target that has one already.
    pub(super) fn fixed_size(&self) -> Option<u64> {
        match self.file {
            Place::Device { bytes, .. } => Some(bytes),
            Place::Anonymous { .. } | Place::Named { .. } => None,
        }
    }

    /// Checks that a volume of `bytes` bytes fits a target that cannot grow.
    pub(super) fn check_room(&self, bytes: u64) -> Result<(), PackError> {
        match self.fixed_size() {
            Some(available) if available < bytes => Err(PackError::DeviceTooSmall {
                image: self.image.clone(),
                available,
                needed: bytes,
            }),
            _ => Ok(()),
        }
    }

    /// The target as a device of at least `bytes` bytes. A file becomes empty first.
    pub(super) fn device(&mut self, bytes: u64) -> Result<Arc<dyn BlockDevice>, PackError> {
        let (file, grow) = match &self.file {
            Place::Anonymous { file, .. } => (file.try_clone(), true),
            Place::Named { file, .. } => (file.as_file().try_clone(), true),
            Place::Device { file, .. } => (file.try_clone(), false),
        };
        let image = &self.image;
        let failed =
            |action| move |source| PackError::Target { action, image: image.clone(), source };
        let file = file.map_err(failed("open"))?;
        if grow {
            file.set_len(0)
                .and_then(|()| file.set_len(bytes))
                .map_err(failed("set the length of"))?;
        }
        let name = self.image.display().to_string();
        Ok(Arc::new(FileDevice::from_file(file, &name, &FileOptions::default())?))
    }

    /// Gives the whole image its name.
    pub(super) fn finish(self, durable: bool) -> Result<(), PackError> {
        let image = self.image;
        let failed = |action, source| PackError::Target { action, image: image.clone(), source };
        match self.file {
            Place::Device { .. } => return Ok(()),
            Place::Anonymous { file, replace } => {
                give_name(&file, &image, replace).map_err(|error| failed("name", error))?;
            }
            Place::Named { file, replace: true } => {
                file.persist(&image).map_err(|error| failed("replace", error.error))?;
            }
            Place::Named { file, replace: false } => {
                file.persist_noclobber(&image).map_err(|error| failed("name", error.error))?;
            }
        }
        if durable {
            File::open(directory_of(&image))
                .and_then(|directory| directory.sync_all())
                .map_err(|error| failed("make durable the name of", error))?;
        }
        Ok(())
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

fn directory_of(image: &Path) -> &Path {
    match image.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
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
            let mut builder = tempfile::Builder::new();
            builder.prefix(".undercroft-").suffix(".partial");
            let file = builder.tempfile_in(directory).map_err(failed)?;
            Ok(Place::Named { file, replace })
        }
        Err(error) => Err(failed(error.into())),
    }
}

/// Links a file without a name into its directory.
fn give_name(file: &File, image: &Path, replace: bool) -> io::Result<()> {
    let open_file = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = |name: &Path| {
        rustix::fs::linkat(CWD, open_file.as_str(), CWD, name, AtFlags::SYMLINK_FOLLOW)
    };
    if !replace {
        return Ok(link(image)?);
    }
    // A link cannot replace a name, a rename can.
    let name = format!(".undercroft-{}.partial", std::process::id());
    let temporary = directory_of(image).join(name);
    link(&temporary)?;
    std::fs::rename(&temporary, image).inspect_err(|_| {
        // The error to report is that of the rename.
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Where a target is mounted: itself, or through a loop device over it.
fn mounted_at(image: &Path, metadata: &std::fs::Metadata) -> Option<String> {
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

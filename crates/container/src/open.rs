//! From a file to the disk in it.

use crate::chain::{self, Chain};
use crate::driver::ContainerDriver;
use crate::error::ContainerError;
use crate::header;
use std::error::Error;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use undercroft_block::stack::{DiskFormat, FileLeaf, LeafOptions, register_containers};
use undercroft_block::{
    BlockDevice, Drive, Exclusive, Layer, Leaf, Limits, QueueOptions, Sector, Taken,
};

/// Threads that read and write.
const THREADS: usize = 4;

/// The disk in a file of a format of its own.
pub struct ContainerDevice {
    leaf: Leaf<ContainerDriver>,
    /// `None` if it is only read.
    exclusive: Option<Exclusive>,
}

/// Lets all descriptions of devices in this process have such disks.
pub fn register() {
    register_containers(open_leaf);
}

fn open_leaf(
    leaf: &FileLeaf,
    options: LeafOptions,
) -> Result<Option<Arc<dyn BlockDevice>>, Box<dyn Error + Send + Sync>> {
    Ok(open(leaf, options)?.map(|device| Arc::new(device) as _))
}

/// The name of the format of its own that a file has, if it is one that is known.
#[must_use]
pub fn format_of(path: &Path) -> Option<&'static str> {
    container(path).map(|_| "qcow2")
}

/// The file, open for reading, if it has a format that is known. What cannot be opened or is no file is told
/// by those who take bytes as they are.
fn container(path: &Path) -> Option<File> {
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    header::is_qcow2(&chain::start(&file).ok()?).then_some(file)
}

/// Opens the disk in a file; `None` if the file has no format of its own that is known. How bytes are
/// moved (`direct`, `engine`) is of no account.
///
/// # Errors
/// See [`ContainerError`].
pub fn open(
    leaf: &FileLeaf,
    options: LeafOptions,
) -> Result<Option<ContainerDevice>, ContainerError> {
    let path = leaf.path.as_path();
    let Some(file) = container(path) else { return Ok(None) };
    let failed = |source| ContainerError::Open { path: path.into(), source };
    let name = path.display().to_string();
    let (file, exclusive) = if options.read_only {
        (file, None)
    } else {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let (file, exclusive) = Exclusive::claim(file, &name)?;
        (file, Some(exclusive))
    };
    let directory = match leaf.format {
        DiskFormat::Backed => Some(directory_of(path).map_err(failed)?),
        DiskFormat::Auto | DiskFormat::Raw => None,
    };
    let image =
        Chain { first: path.into(), directory }.open_qcow2(path, file, !options.read_only, 0)?;
    let driver = ContainerDriver::new(name, image, options.read_only);
    let drive = Drive::Threads(THREADS);
    let queue = QueueOptions { drive, time_limit: options.time_limit, ..QueueOptions::default() };
    Ok(Some(ContainerDevice { leaf: Leaf::start(driver, queue)?, exclusive }))
}

/// The directory of a file, without symbolic links.
fn directory_of(path: &Path) -> std::io::Result<PathBuf> {
    let path = path.canonicalize()?;
    Ok(path.parent().unwrap_or(Path::new("/")).to_owned())
}

impl BlockDevice for ContainerDevice {
    fn name(&self) -> &str {
        self.leaf.name()
    }

    fn capacity(&self) -> Sector {
        self.leaf.capacity()
    }

    fn limits(&self) -> Limits {
        self.leaf.limits()
    }

    fn is_read_only(&self) -> bool {
        self.leaf.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        self.leaf.layer()
    }

    fn check_alone(&self) -> Result<(), Taken> {
        self.exclusive.as_ref().map_or(Ok(()), Exclusive::check)
    }
}

impl fmt::Debug for ContainerDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerDevice")
            .field("name", &self.name())
            .field("capacity", &self.capacity())
            .field("read_only", &self.is_read_only())
            .finish_non_exhaustive()
    }
}

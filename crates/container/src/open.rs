//! From a file to the disk in it.

use crate::chain::{self, Chain, QCOW2};
use crate::disk::{Disk, Stored};
use crate::driver::ContainerDriver;
use crate::error::ContainerError;
use crate::formats::Format;
use crate::guarded::{Guard, Guarded};
use crate::header;
use crate::neighbours::Neighbours;
use crate::note::{self, Note};
use crate::packed::Packing;
use crate::reader::Reader;
use crate::snapshot::Snapshot;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::Arc;
use undercroft_block::stack::{DiskFormat, FileLeaf, LeafOptions, register_containers};
use undercroft_block::{BlockDevice, Drive, Driver, Exclusive, Leaf, QueueOptions};

/// Threads that read and write.
const THREADS: usize = 4;

/// Lets all descriptions of devices in this process have such disks. `note` is told what takes long, and
/// why.
pub fn register(note: Note) {
    note::set(note);
    register_containers(open_leaf);
}

fn open_leaf(
    leaf: &FileLeaf,
    options: LeafOptions,
) -> Result<Option<Arc<dyn BlockDevice>>, Box<dyn Error + Send + Sync>> {
    Ok(open(leaf, options)?)
}

/// The name of the format of its own that a file has, if it is one that is known.
#[must_use]
pub fn format_of(path: &Path) -> Option<&'static str> {
    container(path).map(|(container, _)| container.name())
}

/// The snapshots in a file, in the order of the image; none where its format has none.
///
/// # Errors
/// The image is damaged, or cannot be read.
pub fn snapshots_of(path: &Path) -> Result<Vec<Snapshot>, ContainerError> {
    match container(path) {
        Some((Container::Qcow2, stored)) => chain::snapshots(path, &stored.into_file()),
        _ => Ok(Vec::new()),
    }
}

/// The formats that are known.
enum Container {
    Qcow2,
    Read(Format),
    Packed(Packing),
}

impl Container {
    const fn name(&self) -> &'static str {
        match self {
            Self::Qcow2 => QCOW2,
            Self::Read(format) => format.name(),
            Self::Packed(packing) => packing.name(),
        }
    }
}

/// The file, open for reading, if it has a format that is known. What cannot be opened or is no file is told
/// by those who take bytes as they are.
fn container(path: &Path) -> Option<(Container, Stored)> {
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    let start = chain::start(&file).ok()?;
    let stored = Stored::new(file).ok()?;
    if header::is_qcow2(&start) {
        return Some((Container::Qcow2, stored));
    }
    let found = match Packing::of(&start) {
        Some(packing) => Container::Packed(packing),
        None => Container::Read(Format::of(&start, &stored)?),
    };
    Some((found, stored))
}

/// Opens the disk in a file; `None` if the file has no format of its own that is known. How bytes are
/// moved (`direct`, `engine`) is of no account.
///
/// # Errors
/// See [`ContainerError`].
pub fn open(
    leaf: &FileLeaf,
    options: LeafOptions,
) -> Result<Option<Arc<dyn BlockDevice>>, ContainerError> {
    let path = leaf.path.as_path();
    let no_snapshot = |name: &String| {
        let (path, name, names) = (path.to_owned(), name.clone(), Vec::new());
        ContainerError::NoSnapshot { path, name, names }
    };
    let snapshot = leaf.snapshot.as_ref();
    let Some((container, stored)) = container(path) else {
        return snapshot.map_or(Ok(None), |name| Err(no_snapshot(name)));
    };
    let failed = |source| ContainerError::Open { path: path.into(), source };
    let is_allowed = leaf.format == DiskFormat::Backed;
    let neighbours = Neighbours::of(path, is_allowed).map_err(failed)?;
    let kind = container.name();
    let is_qcow2 = matches!(container, Container::Qcow2);
    if let Some(name) = snapshot.filter(|_| !is_qcow2) {
        return Err(no_snapshot(name));
    }
    if !options.read_only && snapshot.is_some() {
        return Err(ContainerError::Past { path: path.into() });
    }
    if !options.read_only && !is_qcow2 {
        return Err(ContainerError::ReadOnly { path: path.into(), kind });
    }
    let chain = Chain { first: path.into(), neighbours };
    let past = |past| Ok(Box::new(past) as Box<dyn Disk>);
    let disk = match (container, snapshot) {
        (Container::Qcow2, Some(name)) => {
            past(chain.open_snapshot(path, stored.into_file(), name)?)
        }
        (Container::Qcow2, None) if options.read_only && stored.array(0).is_ok_and(is_dirty) => {
            past(chain.open_dirty(path, stored.into_file())?)
        }
        (Container::Qcow2, None) => {
            return open_qcow2(path, stored.into_file(), &chain, options).map(Some);
        }
        (Container::Read(format), _) => format.open(stored, path, &chain.neighbours),
        (Container::Packed(packing), _) => packing.open(stored, path),
    };
    let disk = disk.map_err(|obstacle| obstacle.of(path, kind))?;
    start(Reader { name: path.display().to_string(), disk }, options, Guard::None).map(Some)
}

fn is_dirty(start: [u8; header::LENGTH]) -> bool {
    header::is_dirty(&start)
}

fn open_qcow2(
    path: &Path,
    file: File,
    chain: &Chain,
    options: LeafOptions,
) -> Result<Arc<dyn BlockDevice>, ContainerError> {
    let failed = |source| ContainerError::Open { path: path.into(), source };
    let name = path.display().to_string();
    let (file, guard) = if options.read_only {
        (file, Guard::None)
    } else {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed)?;
        let (file, exclusive) = Exclusive::claim(file, &name)?;
        (file, Guard::File(exclusive))
    };
    let image = chain.open_qcow2(path, file, !options.read_only, 0)?;
    start(ContainerDriver::new(name, image, options.read_only), options, guard)
}

/// The device of a driver, with threads of its own.
fn start<D: Driver>(
    driver: D,
    options: LeafOptions,
    guard: Guard,
) -> Result<Arc<dyn BlockDevice>, ContainerError> {
    let drive = Drive::Threads(THREADS);
    let queue = QueueOptions { drive, time_limit: options.time_limit, ..QueueOptions::default() };
    Ok(Arc::new(Guarded { leaf: Leaf::start(driver, queue)?, guard }))
}

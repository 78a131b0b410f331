//! What goes into a partition, looked at before the disk is made.

use super::copy::Copier;
use super::fat::{FatPlan, is_fat};
use super::layout::Place;
use super::partition::{Content, Partition};
use super::{DiskError, swap};
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use undercroft_block::{Sector, Window, write_all_at};
use undercroft_source::{ForeignKind, recognise};

/// A partition whose source was looked at.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) partition: Partition,
    contents: Contents,
    /// Bytes that it needs; 0 for the volume.
    pub(super) bytes: u64,
}

/// What is put into a partition.
#[derive(Debug)]
enum Contents {
    Volume,
    Copy { file: File, path: PathBuf, length: u64 },
    Fat(FatPlan),
    Swap,
    Zeros,
}

impl Planned {
    /// Looks at the source of a partition. `block_size` is that of the disk.
    pub(super) fn new(
        partition: &Partition,
        number: usize,
        block_size: u64,
    ) -> Result<Self, DiskError> {
        let (contents, bytes) = Self::look(partition, number, block_size)?;
        Ok(Self { partition: partition.clone(), contents, bytes })
    }

    /// What a partition will hold, and the bytes that it takes.
    fn look(
        partition: &Partition,
        number: usize,
        block_size: u64,
    ) -> Result<(Contents, u64), DiskError> {
        let kind = &partition.kind;
        match &partition.content {
            Content::Volume if partition.size.is_some() => Err(DiskError::SizeOfVolume(number)),
            Content::Volume => Ok((Contents::Volume, 0)),
            Content::Empty(bytes) => {
                let size = partition.size.unwrap_or(*bytes);
                match size {
                    0 => Err(DiskError::Empty(number)),
                    _ if !kind.is_swap() => Ok((Contents::Zeros, size)),
                    _ if size < swap::LEAST => Err(DiskError::SwapTooSmall { number, size }),
                    _ => Ok((Contents::Swap, size)),
                }
            }
            Content::Path(path) => {
                let (file, length) = open(path, kind.is_fat()).map_err(|error| match error {
                    DiskError::WrongSource { path, what: DIRECTORY } => {
                        DiskError::Directory { path, number, kind: kind.clone() }
                    }
                    error => error,
                })?;
                let Some(file) = file else {
                    let plan = FatPlan::new(path, kind.name(), number, partition.size, block_size)?;
                    let bytes = plan.bytes();
                    return Ok((Contents::Fat(plan), bytes));
                };
                if let Some(container) = container(&file) {
                    return Err(DiskError::Container { path: path.clone(), what: container });
                }
                if kind.is_fat() && !is_fat(&file, length) {
                    let (path, kind) = (path.clone(), kind.clone());
                    return Err(DiskError::NotFat { path, number, kind });
                }
                let size = partition.size.unwrap_or(length);
                if size < length {
                    let path = path.clone();
                    return Err(DiskError::TooSmall { path, length, number, size });
                }
                if size == 0 {
                    return Err(DiskError::Empty(number));
                }
                Ok((Contents::Copy { file, path: path.clone(), length }, size))
            }
        }
    }

    /// Fills the partition, which reads as zeros.
    pub(super) fn write(
        &self,
        window: &Window,
        place: Place,
        copier: &mut Copier<'_>,
    ) -> Result<(), DiskError> {
        match &self.contents {
            Contents::Volume | Contents::Zeros => Ok(()),
            Contents::Copy { file, path, length } => copier.copy((file, path), *length, window, 0),
            Contents::Fat(plan) => plan.write(window, place.start, copier),
            Contents::Swap => {
                let header = swap::header(self.bytes, copier.identity.id("swap", place.start));
                copier.identity.add(&header);
                Ok(write_all_at(window, Sector::ZERO, &header)?)
            }
        }
    }
}

/// The name of the format of a file that is an image of a disk, but does not hold its bytes as they are.
fn container(file: &File) -> Option<&'static str> {
    let mut head = [0; 512];
    // What cannot be read is told when it is copied.
    let read = file.read_at(&mut head, 0).unwrap_or(0);
    let found = recognise(&head[..read])?;
    (found.kind == ForeignKind::Container).then_some(found.name)
}

const DIRECTORY: &str = "a directory";

/// Opens what a partition is made from: a file with its length, or a directory, if that will do.
fn open(path: &Path, directory: bool) -> Result<(Option<File>, u64), DiskError> {
    let failed = |action| move |source| DiskError::Source { action, path: path.to_owned(), source };
    // To open a pipe is to wait for its other end; what it is, is told below.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(nonblocking);
    let mut file = options.open(path).map_err(failed("open"))?;
    let metadata = file.metadata().map_err(failed("look at"))?;
    let kind = metadata.file_type();
    if kind.is_dir() && directory {
        return Ok((None, 0));
    }
    if !kind.is_file() && !kind.is_block_device() {
        let what = if kind.is_dir() { DIRECTORY } else { "a special file" };
        return Err(DiskError::WrongSource { path: path.to_owned(), what });
    }
    // The end of a block device is its length, which its metadata does not tell.
    let length = file.seek(SeekFrom::End(0)).map_err(failed("find the length of"))?;
    Ok((Some(file), length))
}

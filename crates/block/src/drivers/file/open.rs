//! Opening a file as a device: what is accepted, how large it is.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use thiserror::Error;

use crate::sector::{SECTOR_SIZE, Sector};

/// How a [`FileDevice`](super::FileDevice) works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOptions {
    /// Refuse everything that modifies.
    pub read_only: bool,
    /// Worker threads; 0 = the submitting thread does the I/O and returns when it is done.
    pub threads: usize,
    /// Bytes of requests that may wait for a worker before `submit` blocks. One request waits
    /// whatever its size.
    pub queue_bytes: u64,
}

impl Default for FileOptions {
    /// Two workers: one copies while another waits for a disk. A queue that keeps them busy while
    /// the submitter fills its next plug.
    fn default() -> Self {
        Self { read_only: false, threads: 2, queue_bytes: 16 << 20 }
    }
}

/// Why a file cannot be a device.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It cannot be opened.
    #[error("cannot open {name}")]
    Open {
        /// Path of the file.
        name: String,
        /// Answer of the operating system.
        source: io::Error,
    },
    /// It is a directory, a pipe or the like.
    #[error("{name} is neither a regular file nor a block device")]
    NotAFile {
        /// Path of the file.
        name: String,
    },
    /// Its size cannot be read.
    #[error("cannot read the size of {name}")]
    Size {
        /// Path of the file.
        name: String,
        /// Answer of the operating system.
        source: io::Error,
    },
    /// Its size cannot be changed.
    #[error("cannot make {name} {bytes} bytes long")]
    Resize {
        /// Path of the file.
        name: String,
        /// The size asked for.
        bytes: u64,
        /// Answer of the operating system.
        source: io::Error,
    },
    /// A worker thread cannot be started.
    #[error("cannot start a worker thread for {name}; try fewer threads")]
    Thread {
        /// Path of the file.
        name: String,
        /// Answer of the operating system.
        source: io::Error,
    },
}

/// A file that can be a device.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) name: String,
    pub(super) capacity: Sector,
}

impl Opened {
    /// Opens the existing file at `path`.
    pub(super) fn at(path: &Path, read_only: bool) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        match OpenOptions::new().read(true).write(!read_only).open(path) {
            Ok(file) => Self::from_file(file, &name),
            Err(source) => Err(OpenError::Open { name, source }),
        }
    }

    /// Looks at kind and size of `file`.
    pub(super) fn from_file(file: File, name: &str) -> Result<Self, OpenError> {
        let name = name.to_owned();
        let bytes = match size(&file) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(OpenError::NotAFile { name }),
            Err(source) => return Err(OpenError::Size { name, source }),
        };
        // A partial last sector counts; what it lacks reads as zeroes.
        Ok(Self { file, name, capacity: Sector::covering(bytes) })
    }
}

/// Size in bytes; `None` if `file` is neither a regular file nor a block device.
fn size(mut file: &File) -> io::Result<Option<u64>> {
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok(Some(metadata.len()))
    } else if metadata.file_type().is_block_device() {
        // stat reports 0 for block devices; the end of the file is the end of the device.
        file.seek(SeekFrom::End(0)).map(Some)
    } else {
        Ok(None)
    }
}

/// Makes `file` `capacity` sectors long.
pub(super) fn set_len(
    file: &File,
    name: &str,
    read_only: bool,
    capacity: Sector,
) -> Result<(), OpenError> {
    let result = match capacity.to_bytes() {
        _ if read_only => Err(io::ErrorKind::PermissionDenied.into()),
        None => Err(io::ErrorKind::FileTooLarge.into()),
        Some(bytes) => file.set_len(bytes),
    };
    let bytes = capacity.0.saturating_mul(SECTOR_SIZE);
    result.map_err(|source| OpenError::Resize { name: name.to_owned(), bytes, source })
}

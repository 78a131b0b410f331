//! Why a device cannot be opened.

use std::io;

use thiserror::Error;

use super::taken::Taken;

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
    /// It is to be changed, and the disk does not let it.
    #[error("{name} is write-protected: it can only be read")]
    WriteProtected {
        /// Path of the disk.
        name: String,
    },
    /// It is to be changed, and another program or mount has it.
    #[error(transparent)]
    Taken(#[from] Taken),
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
    /// Its file system does not let the page cache be avoided.
    #[error("{name} does not support direct I/O; open it without")]
    Direct {
        /// Path of the file.
        name: String,
        /// Answer of the operating system.
        source: io::Error,
    },
    /// Its disk cannot be asked for completions.
    #[error("the disk of {name} has no queues to poll; open it without polling")]
    NotPolled {
        /// Path of the file.
        name: String,
    },
    /// A ring cannot be set up.
    #[error("cannot set up io_uring for {name}; try the engine that uses threads")]
    Ring {
        /// Path of the file.
        name: String,
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

impl OpenError {
    /// Whether it may be read, although it cannot be changed: the disk, its file system or the
    /// permissions of the file do not let it.
    #[must_use]
    pub fn is_protection(&self) -> bool {
        match self {
            Self::WriteProtected { .. } => true,
            Self::Open { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ),
            _ => false,
        }
    }
}

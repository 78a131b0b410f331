//! Volumes in files of this machine.

use crate::{Error, FileSystem, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error as ThisError;
use undercroft_block::{BlockDevice, FileDevice, OpenError};
use undercroft_xfs::format::FileType;
use undercroft_xfs::mkfs::{self, MkfsError, MkfsOptions};
use undercroft_xfs::ops::NewInode;
use uuid::Uuid;

/// Why a volume in a file was not opened or made.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum ImageError {
    /// The file cannot be opened, or another program uses it.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file cannot be made: there is one, perhaps.
    #[error("cannot make {path}")]
    Make {
        /// The file.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// No volume has this size.
    #[error(transparent)]
    Size(#[from] MkfsError),
    /// The volume cannot be used.
    #[error(transparent)]
    Volume(#[from] Error),
}

impl OpenOptions {
    /// Opens the volume that fills a file or disk of this machine, as these options say.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub fn open_image(&self, path: impl AsRef<Path>) -> Result<FileSystem, ImageError> {
        let device = FileDevice::open(path.as_ref(), !self.writable)?;
        Ok(FileSystem::open(Arc::new(device), self)?)
    }
}

impl FileSystem {
    /// Opens the volume that fills a file or disk of this machine, to read.
    /// [`OpenOptions::writable`] with [`open_image`](OpenOptions::open_image) is for changes, and
    /// [`open`](Self::open) for other devices.
    ///
    /// # Errors
    /// See [`ImageError`].
    pub fn open_image(path: impl AsRef<Path>) -> Result<Self, ImageError> {
        OpenOptions::read_only().open_image(path)
    }

    /// Makes a file of `size` bytes with an empty volume in it, as `mkfs.xfs` makes one, and opens it
    /// for changes. There must be no file at the path. Other volumes are made by
    /// [`mkfs`](undercroft_xfs::mkfs).
    ///
    /// # Errors
    /// See [`ImageError`]. No file is left then.
    pub fn format(path: impl AsRef<Path>, size: u64) -> Result<Self, ImageError> {
        let path = path.as_ref();
        let plan = mkfs::plan(&MkfsOptions::new(size, Uuid::new_v4()))?;
        let unmade = |source| ImageError::Make { path: path.display().to_string(), source };
        let file = std::fs::File::create_new(path).map_err(unmade)?;
        let made = file.set_len(size).map_err(unmade).and_then(|()| {
            let device: Arc<dyn BlockDevice> = Arc::new(FileDevice::open(path, false)?);
            let root = NewInode::new(FileType::Directory, 0o755);
            mkfs::finish(&mkfs::begin(&device, plan, &root)?, false)?;
            Ok(Self::open(device, &OpenOptions::writable())?)
        });
        made.inspect_err(|_| {
            // The first error counts.
            let _ = std::fs::remove_file(path);
        })
    }
}

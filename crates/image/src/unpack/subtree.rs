//! The part of a volume that is unpacked.

use super::UnpackError;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use undercroft_fs::{Error, ErrorKind, FileSystem, PathError};
use undercroft_xfs::Volume;
use undercroft_xfs::ops::path_text;
use undercroft_xfs::units::InodeNumber;

/// A directory of a volume, with everything below it. Made from a volume it is all of that.
#[derive(Clone, Copy, Debug)]
pub struct Subtree<'v> {
    pub(super) volume: &'v Arc<Volume>,
    /// The directory on top.
    pub(super) directory: InodeNumber,
    /// Its path from the root, for messages; without slashes at its ends, empty for the root.
    pub(super) path: &'v [u8],
}

impl<'v> Subtree<'v> {
    /// The directory at a path, which messages name. Symbolic links on the way are followed; those
    /// below are unpacked as links.
    ///
    /// # Errors
    /// It does not exist, or is no directory; a damaged structure; the device failed.
    pub fn at(fs: &'v FileSystem, path: &'v Path) -> Result<Self, PathError> {
        let found = fs.metadata(path)?;
        if !found.is_dir() {
            let (what, kind) = ("not a directory", ErrorKind::NotDirectory);
            let error = Error::WrongKind { path: String::new(), what, kind };
            return Err(PathError::new(path, error));
        }
        let path = path.as_os_str().as_bytes();
        let is_name = |byte: &u8| *byte != b'/';
        let start = path.iter().position(is_name).unwrap_or(path.len());
        let end = path.iter().rposition(is_name).map_or(start, |last| last + 1);
        Ok(Self { volume: fs.volume(), directory: found.number, path: &path[start..end] })
    }

    /// The parent of the directory on top, as far as it is known without a look: the root directory
    /// is its own.
    pub(super) fn parent(&self) -> Option<InodeNumber> {
        let root = self.volume.geometry().root_inode;
        (self.directory == root).then_some(root)
    }

    /// The path from the root of what has the path `below` from the directory on top, for a message.
    pub(super) fn path_text(&self, below: &[u8]) -> String {
        let between: &[u8] = if self.path.is_empty() || below.is_empty() { b"" } else { b"/" };
        format!("/{}", path_text(&[self.path, between, below].concat()))
    }

    /// An error of the volume at a path from the directory on top.
    pub(super) fn damaged(&self, below: &[u8], source: Error) -> UnpackError {
        UnpackError::Volume { path: self.path_text(below), source }
    }
}

impl<'v> From<&'v Arc<Volume>> for Subtree<'v> {
    fn from(volume: &'v Arc<Volume>) -> Self {
        Self { volume, directory: volume.geometry().root_inode, path: b"" }
    }
}

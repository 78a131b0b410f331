//! The part of a volume that is unpacked.

use super::UnpackError;
use std::sync::Arc;
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
    path: &'v [u8],
}

impl<'v> Subtree<'v> {
    /// The directory with this inode and this path from the root, which messages name.
    #[must_use]
    pub fn new(volume: &'v Arc<Volume>, directory: InodeNumber, path: &'v [u8]) -> Self {
        let is_name = |byte: &u8| *byte != b'/';
        let start = path.iter().position(is_name).unwrap_or(path.len());
        let end = path.iter().rposition(is_name).map_or(start, |last| last + 1);
        Self { volume, directory, path: &path[start..end] }
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
    pub(super) fn damaged(&self, below: &[u8], source: undercroft_xfs::Error) -> UnpackError {
        UnpackError::Volume { path: self.path_text(below), source }
    }
}

impl<'v> From<&'v Arc<Volume>> for Subtree<'v> {
    fn from(volume: &'v Arc<Volume>) -> Self {
        Self::new(volume, volume.geometry().root_inode, b"")
    }
}

//! The targets that a tree is unpacked into, and what they are given.

use super::UnpackError;
use std::ops::Range;
use undercroft_xfs::format::{DeviceNumber, FileType, InodeCore};
use undercroft_xfs::ops::{NamedValue, path_text};

/// Counts of the files unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Regular files.
    pub files: u64,
    /// Directories, that on top included.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Devices, FIFOs and sockets.
    pub specials: u64,
    /// Further names of files.
    pub hard_links: u64,
    /// Bytes of file data, holes not counted.
    pub bytes: u64,
    /// Names of files that could not be made, for each of which there was an [`Event::Failed`].
    pub failed: u64,
    /// What could not be kept.
    pub warnings: Warnings,
}

/// Counts of what could not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warnings {
    /// Entries whose owner could not be set; they have no setuid and setgid bits then.
    pub owners: u64,
    /// Extended attributes that could not be set.
    pub attributes: u64,
    /// Devices and other special files that could not be made.
    pub specials: u64,
}

impl Warnings {
    /// Whether everything was kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How far the work is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Names unpacked.
    pub entries: u64,
    /// Bytes of data unpacked.
    pub bytes: u64,
}

/// What happens on the way.
#[derive(Debug)]
pub enum Event<'a> {
    /// This much is done.
    Progress(Progress),
    /// A name was left out; the work goes on.
    Failed(&'a UnpackError),
}

/// One file on its way out, without its data.
pub(super) struct Item<'a> {
    /// Path from the directory on top, without slashes at its ends; empty for that itself.
    pub(super) path: &'a [u8],
    pub(super) kind: FileType,
    pub(super) core: InodeCore,
    /// Number of a device.
    pub(super) device: Option<DeviceNumber>,
    pub(super) attributes: &'a [NamedValue],
}

impl Item<'_> {
    /// Last component of the path; empty for the directory on top.
    pub(super) fn name(&self) -> &[u8] {
        self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// The path for a message.
    pub(super) fn text(&self) -> String {
        if self.path.is_empty() { ".".to_owned() } else { path_text(self.path) }
    }

    /// An error of the destination, which holds no files of this size.
    pub(super) fn too_large(&self) -> UnpackError {
        UnpackError::TooLarge { path: self.text(), size: self.core.size }
    }

    /// The path is longer than those of sources.
    pub(super) fn path_too_long(&self) -> UnpackError {
        let (length, start) = (self.path.len(), &self.path[..self.path.len().min(100)]);
        UnpackError::PathLength { path: format!("{}...", path_text(start)), length }
    }
}

/// Takes a piece of data with its place in the file.
pub(super) type Take<'t> = dyn FnMut(u64, &[u8]) -> Result<(), UnpackError> + 't;

/// The data of a regular file on its way out.
pub(super) trait Contents {
    /// Opens them: where in them data is, in ascending order. Refuses what cannot be read before
    /// anything is made of it.
    fn open(&mut self) -> Result<Vec<Range<u64>>, UnpackError>;

    /// Hands over the data of the ranges piece by piece, in memory of its own or in `buffer`; returns
    /// how much it was.
    fn copy(
        &mut self,
        ranges: &[Range<u64>],
        buffer: &mut Vec<u8>,
        take: &mut Take<'_>,
    ) -> Result<u64, UnpackError>;
}

/// Takes a tree, depth first.
pub(super) trait Sink {
    /// A directory begins.
    fn enter(&mut self, item: &Item<'_>) -> Result<(), UnpackError>;
    /// A directory ends.
    fn leave(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError>;
    /// A regular file; returns the number of bytes of data in it. One that is
    /// [too large](UnpackError::TooLarge) does not stay.
    fn file(
        &mut self,
        item: &Item<'_>,
        contents: &mut dyn Contents,
        warnings: &mut Warnings,
    ) -> Result<u64, UnpackError>;
    /// A symbolic link.
    fn symlink(
        &mut self,
        item: &Item<'_>,
        target: &[u8],
        warnings: &mut Warnings,
    ) -> Result<(), UnpackError>;
    /// A device, FIFO or socket.
    fn special(&mut self, item: &Item<'_>, warnings: &mut Warnings) -> Result<(), UnpackError>;
    /// A further name of what came under the path `first`. The item is without attributes.
    fn link(&mut self, item: &Item<'_>, first: &[u8]) -> Result<(), UnpackError>;
}

impl Summary {
    /// Hands over a file under its first name, and counts it.
    pub(super) fn take(
        &mut self,
        item: &Item<'_>,
        contents: &mut dyn Contents,
        target: &[u8],
        sink: &mut dyn Sink,
    ) -> Result<(), UnpackError> {
        let warnings = &mut self.warnings;
        match item.kind {
            FileType::Directory => {
                self.directories += 1;
                sink.enter(item)
            }
            FileType::Regular => {
                self.bytes += sink.file(item, contents, warnings)?;
                self.files += 1;
                Ok(())
            }
            FileType::Symlink => {
                self.symlinks += 1;
                sink.symlink(item, target, warnings)
            }
            _ => {
                self.specials += 1;
                sink.special(item, warnings)
            }
        }
    }
}

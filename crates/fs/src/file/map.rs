//! Where the data of a file is.

use super::File;
use undercroft_xfs::{Error, ops};

/// A part of a file that has a place on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// First byte in the file.
    pub offset: u64,
    /// First byte on the device.
    pub place: u64,
    /// Bytes.
    pub len: u64,
    /// It was never written, and reads as zeros.
    pub unwritten: bool,
    /// Other files, or other places of this one, have the same blocks.
    pub shared: bool,
}

impl File {
    /// The parts of the file that have a place on the device, ascending, also behind its end. Dirty
    /// data may have none yet: [`fdatasync`](Self::fdatasync) gives it one.
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub fn extent_map(&self) -> Result<Vec<FileExtent>, Error> {
        let volume = self.file_system().volume();
        let geometry = volume.geometry();
        let map = ops::extent_map(volume, &self.open_file().inode().read())?;
        let bytes = |blocks: u64| blocks << geometry.block_log;
        let extent = |part: ops::MappedExtent| FileExtent {
            offset: bytes(part.extent.offset.0),
            place: geometry.sector(part.extent.start).0 * 512,
            len: bytes(part.extent.len.into()),
            unwritten: part.extent.unwritten,
            shared: part.shared,
        };
        Ok(map.into_iter().map(extent).collect())
    }
}

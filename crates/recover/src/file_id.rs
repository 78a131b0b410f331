//! A file, told apart from others that had or have its number.

use std::fmt;

use undercroft_xfs_format::InodeCore;
use undercroft_xfs_format::units::InodeNumber;

/// A number of an inode, and which of the files it was that had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// The number.
    pub number: InodeNumber,
    /// The generation of the number.
    pub generation: u32,
}

impl FileId {
    /// The file whose removal a free inode shows: that raised the generation.
    pub(crate) const fn freed(core: &InodeCore) -> Self {
        Self { number: core.number, generation: core.generation.wrapping_sub(1) }
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.number, self.generation)
    }
}

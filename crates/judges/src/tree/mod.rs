//! Whether two directory trees are the same, field by field.
//!
//! [`compare`] walks both at once in the order of names and reads only stored data: contents block
//! by block, holes not at all. Cost grows with the number of entries and the bytes of data; memory
//! with the names of the directories on the present path and the number of hard links.

mod attributes;
mod data;
mod listing;
mod walk;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Error;
pub use listing::Listing;

/// The properties compared beyond names, kinds, modes, owners, mtimes, contents, sizes, extended
/// attributes (ACLs among them), link targets, device numbers and hard links, which always are.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether and how allocation is compared.
    pub holes: Holes,
    /// Access times as well.
    pub atime: bool,
    /// Change times as well.
    pub ctime: bool,
    /// The metadata of the two root directories as well, not only their contents.
    pub root: bool,
    /// How many differences are kept with their values; all are counted.
    pub limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { holes: Holes::Map { unit: 4096 }, atime: false, ctime: false, root: true, limit: 20 }
    }
}

/// How the allocation of regular files is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holes {
    /// Not at all.
    Ignore,
    /// By the file system's count of allocated blocks (`st_blocks`). On XFS it includes the
    /// attribute fork and the mapping's own blocks, so it suits two volumes of one kind.
    Blocks,
    /// By the ranges that hold data (`SEEK_DATA`), each grown to multiples of `unit` bytes: the
    /// larger of the two block sizes.
    Map {
        /// Bytes, not zero.
        unit: u64,
    },
}

/// What two entries of one path disagree on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// One tree has no such entry.
    Presence,
    /// File, directory, link and so on; nothing else of the entry is compared then.
    Kind,
    /// Permission bits with setuid, setgid and sticky.
    Mode,
    /// Owner.
    Uid,
    /// Group.
    Gid,
    /// Size of a regular file.
    Size,
    /// Modification time.
    Mtime,
    /// Access time.
    Atime,
    /// Change time.
    Ctime,
    /// Number of names of a file that is not a directory.
    Links,
    /// The other names of a hard link.
    LinkGroup,
    /// Number of a character or block device.
    Device,
    /// Target of a symbolic link.
    Target,
    /// The extended attribute of this name, printable.
    Attribute(String),
    /// Contents of a regular file.
    Contents,
    /// Allocation of a regular file.
    Holes,
}

/// One disagreement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Path below the roots.
    pub path: PathBuf,
    /// What differs.
    pub field: Field,
    /// Its value in the first tree.
    pub left: String,
    /// Its value in the second tree.
    pub right: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, field, left, right } = self;
        write!(formatter, "{path:?}: {field:?}: {left} / {right}")
    }
}

/// The outcome of a comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Entries that both trees have, the roots among them.
    pub entries: u64,
    /// Bytes of contents compared.
    pub bytes: u64,
    /// Number of differences.
    pub count: u64,
    /// The first differences, up to [`Options::limit`].
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// Whether the trees are the same.
    #[must_use]
    pub fn same(&self) -> bool {
        self.count == 0
    }

    /// Fails the test with the differences when there are any.
    ///
    /// # Panics
    /// The trees differ.
    #[track_caller]
    pub fn assert_same(&self) {
        assert!(self.same(), "{self}");
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} differences in {} entries", self.count, self.entries)?;
        for difference in &self.differences {
            write!(formatter, "\n  {difference}")?;
        }
        Ok(())
    }
}

/// Compares the trees below the directories `left` and `right`.
///
/// # Errors
/// Something cannot be read: the comparison would not be whole.
pub fn compare(left: &Path, right: &Path, options: &Options) -> Result<Comparison, Error> {
    walk::Walk::new(left, right, options).run()
}

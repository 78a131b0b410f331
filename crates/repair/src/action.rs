//! What a repair does, as data.

use std::fmt;

use undercroft_xfs::units::{AgNumber, InodeNumber};

/// Where a repair does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Place {
    /// The superblock, the journal.
    Volume,
    /// A group: its headers and trees.
    Group(AgNumber),
    /// An inode.
    Inode(InodeNumber),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume => f.write_str("volume"),
            Self::Group(group) => write!(f, "allocation group {group}"),
            Self::Inode(inode) => write!(f, "inode {inode}"),
        }
    }
}

/// One thing that a repair does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Action {
    /// Where.
    pub place: Place,
    /// What is done, in plain words.
    pub what: String,
    /// What is lost for good, if anything is.
    pub loss: Option<String>,
}

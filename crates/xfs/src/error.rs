//! The error of everything that works on a volume.

use crate::btree::TreeCorruption;
use crate::units::{AgBlock, AgNumber, FileBlock, InodeNumber, Lsn};
use thiserror::Error;
use undercroft_block::{BlockError, Sector};

/// Why an operation on a volume failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),

    /// The bytes are not an XFS file system, or one that this version does not read.
    #[error("not a usable XFS file system: {0}")]
    NotUsable(String),

    /// A metadata block is damaged.
    #[error(
        "damaged {structure} at sector {sector}: {what}; run `undercroft check` for the whole picture"
    )]
    Block {
        /// Name of the structure.
        structure: &'static str,
        /// Where it starts.
        sector: Sector,
        /// The field and what is wrong with it.
        what: String,
    },

    /// A structure of an allocation group is damaged.
    #[error("damaged {structure} in allocation group {group} at block {block}: {what}")]
    Group {
        /// Name of the structure.
        structure: &'static str,
        /// Group.
        group: AgNumber,
        /// Block in the group.
        block: AgBlock,
        /// The field and what is wrong with it.
        what: String,
    },

    /// A B+tree is damaged.
    #[error(transparent)]
    Tree(#[from] TreeCorruption),

    /// An inode is damaged.
    #[error("damaged inode {inode}: {what}")]
    Inode {
        /// Which.
        inode: InodeNumber,
        /// The field and what is wrong with it.
        what: String,
    },

    /// A block of a directory or attribute fork is damaged.
    #[error("damaged {structure} of inode {inode} at file block {block}: {what}")]
    Fork {
        /// "directory" or "attributes".
        structure: &'static str,
        /// Owner.
        inode: InodeNumber,
        /// File block.
        block: FileBlock,
        /// The field and what is wrong with it.
        what: String,
    },

    /// The journal holds something that cannot be replayed.
    #[error(
        "the journal cannot be replayed: record at cycle {}, block {}: {what}; read the volume \
         without its journal (--no-replay), or give the latest changes up with `xfs_repair -L`",
        lsn.cycle(), lsn.block()
    )]
    Journal {
        /// Position of the record.
        lsn: Lsn,
        /// What is wrong.
        what: String,
    },

    /// A name or a path does not exist.
    #[error("{0}: no such file or directory")]
    NotFound(String),

    /// A name exists already.
    #[error("{0}: exists already")]
    Exists(String),

    /// The way of a path leads through too many symbolic links.
    #[error("{0}: too many levels of symbolic links")]
    Loop(String),

    /// A directory that should go still has names.
    #[error("{0}: the directory is not empty")]
    NotEmpty(String),

    /// The operation needs another kind of file.
    #[error("{path}: {what}")]
    WrongKind {
        /// Path or inode.
        path: String,
        /// What was expected.
        what: &'static str,
    },

    /// An argument is outside what the format can hold.
    #[error("{0}")]
    Invalid(String),

    /// No space left on the volume.
    #[error("no space left on the volume: {needed} more blocks of {block_size} bytes needed")]
    NoSpace {
        /// Blocks asked for.
        needed: u64,
        /// Block size.
        block_size: usize,
    },

    /// The inode is not in use, or not by the file that is meant.
    #[error("inode {inode} is gone")]
    Stale {
        /// Which.
        inode: InodeNumber,
    },

    /// Two things are not on the same volume or project.
    #[error("{0}")]
    CrossDevice(String),

    /// A file would be larger than the format allows.
    #[error("{0}")]
    TooLarge(String),

    /// Data of a file that was accepted before was not written. It is lost, or will be tried again if
    /// the reason is a lack of space.
    #[error("data of inode {inode} was not written: {what}")]
    NotWritten {
        /// The file.
        inode: InodeNumber,
        /// Why.
        what: String,
    },

    /// Another thread holds a lock that cannot be waited for.
    #[error("{0}; try again")]
    Busy(String),

    /// The volume must not be written.
    #[error("the volume is read-only: {0}")]
    ReadOnly(String),
}

impl Error {
    /// Whether metadata on the disk is not what it must be, as opposed to a request that cannot be
    /// served or a device that failed.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Block { .. }
                | Self::Group { .. }
                | Self::Tree(_)
                | Self::Inode { .. }
                | Self::Fork { .. }
                | Self::Journal { .. }
        )
    }
}

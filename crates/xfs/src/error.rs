//! The error of everything that works on a volume.

mod kind;
mod tree_corruption;

use crate::format::{AclError, HeaderError, JournalDefect, SuperblockError, TimestampError};
use crate::units::{AgBlock, AgNumber, FileBlock, InodeNumber, Lsn};
pub use kind::ErrorKind;
use std::io;
use thiserror::Error;
pub use tree_corruption::TreeCorruption;
use undercroft_block::{BlockError, Reason, Sector, Taken};

/// Why an operation on a volume failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),

    /// Another program has become able to change the file or disk of the device.
    #[error(transparent)]
    Taken(#[from] Taken),

    /// The bytes are not an XFS file system, or one that this version does not read.
    #[error("not a usable XFS file system: {0}")]
    NotUsable(String),

    /// The superblock is not that of a file system that this version can use.
    #[error("not a usable XFS file system: {0}")]
    Superblock(SuperblockError),

    /// A metadata block is damaged.
    #[error("damaged {structure} at sector {sector}: {what}")]
    Block {
        /// Name of the structure.
        structure: &'static str,
        /// Where it starts.
        sector: Sector,
        /// The field and its defect.
        what: String,
    },

    /// A header of an allocation group is damaged.
    #[error("damaged {structure} at sector {sector}: {defect}")]
    Header {
        /// Name of the header.
        structure: &'static str,
        /// Where it is.
        sector: Sector,
        /// The field and its defect.
        defect: HeaderError,
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
        /// The field and its defect.
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
        /// The field and its defect.
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
        /// The field and its defect.
        what: String,
    },

    /// The journal holds something that cannot be replayed, or does not end where it can go on.
    #[error(
        "the journal cannot be used: record at cycle {}, block {}: {what}",
        lsn.cycle(), lsn.block()
    )]
    Journal {
        /// Position of the record.
        lsn: Lsn,
        /// The defect.
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

    /// An inode was freed while the caller held it, or its number is not in use.
    #[error("inode {inode}: it was removed, or never existed")]
    Stale {
        /// Which.
        inode: InodeNumber,
    },

    /// The operation needs another kind of file.
    #[error("{path}: {what}")]
    WrongKind {
        /// Path or inode.
        path: String,
        /// The expected value.
        what: &'static str,
        /// What programs know this as: [`NotDirectory`](ErrorKind::NotDirectory),
        /// [`IsDirectory`](ErrorKind::IsDirectory), or what Linux has for it.
        kind: ErrorKind,
    },

    /// An argument is outside the range of the format.
    #[error("{0}")]
    Invalid(String),

    /// A file ends before the bytes that were asked for.
    #[error("{0}")]
    EndOfFile(String),

    /// Flags of an inode forbid it.
    #[error("{0}")]
    NotPermitted(String),

    /// The volume lacks a feature, or this version does not do it.
    #[error("{0}")]
    NotSupported(String),

    /// A directory takes only inodes of its own project.
    #[error("{0}")]
    CrossDevice(String),

    /// An inode has as many names as the format can count.
    #[error("{0}")]
    TooManyLinks(String),

    /// A file would be larger than the format allows.
    #[error("{0}")]
    TooLarge(String),

    /// A name, or the target of a symbolic link, is longer than the format allows.
    #[error("{0}")]
    NameTooLong(String),

    /// There is no such attribute.
    #[error("{0}: no such attribute")]
    NoAttribute(String),

    /// The name of an attribute is longer than the format allows.
    #[error("{0}")]
    AttributeNameTooLong(String),

    /// The value of an attribute is longer than the format allows.
    #[error("{0}")]
    AttributeTooLarge(String),

    /// No space left on the volume.
    #[error("no space left on the volume: {needed} more blocks of {block_size} bytes needed")]
    NoSpace {
        /// Blocks asked for.
        needed: u64,
        /// Block size.
        block_size: usize,
    },

    /// A directory, the attributes of an inode, or the inodes of a volume that shrinks have reached the
    /// largest size there is.
    #[error("{0}")]
    Full(String),

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

    /// A block of metadata is on its way to memory, and its reader does not wait. Only operations
    /// that are [awaited](crate::Volume::awaited) meet it, and their callers never.
    #[error("a block of metadata is not in memory yet")]
    NotInMemory,

    /// The volume must not be written.
    #[error("the volume is read-only: {0}")]
    ReadOnly(String),

    /// Something failed before, behind which nothing can be relied upon, or the volume was closed: no
    /// further change is made.
    #[error("the volume is read-only: {0}")]
    Poisoned(String),
}

impl Error {
    /// Whether metadata on the disk is damaged, as opposed to a request that cannot be served or a
    /// device that failed.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Block { .. }
                | Self::Header { .. }
                | Self::Group { .. }
                | Self::Tree(_)
                | Self::Inode { .. }
                | Self::Fork { .. }
                | Self::Journal { .. }
        )
    }

    /// What programs tell errors apart by.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Device(error) => match error.reason {
                Reason::ReadOnly => ErrorKind::ReadOnly,
                // That the host is full is no more the volume's business than a broken disk.
                _ => ErrorKind::Io,
            },
            Self::Poisoned(_) | Self::NotWritten { .. } => ErrorKind::Io,
            Self::Block { .. }
            | Self::Header { .. }
            | Self::Group { .. }
            | Self::Tree(_)
            | Self::Inode { .. }
            | Self::Fork { .. }
            | Self::Journal { .. } => ErrorKind::Damaged,
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Exists(_) => ErrorKind::Exists,
            Self::Loop(_) => ErrorKind::Loop,
            Self::NotEmpty(_) => ErrorKind::NotEmpty,
            Self::Stale { .. } => ErrorKind::Stale,
            Self::WrongKind { kind, .. } => *kind,
            Self::NotUsable(_) | Self::Superblock(_) | Self::Invalid(_) | Self::EndOfFile(_) => {
                ErrorKind::Invalid
            }
            Self::NotPermitted(_) => ErrorKind::NotPermitted,
            Self::NotSupported(_) => ErrorKind::NotSupported,
            Self::CrossDevice(_) => ErrorKind::CrossDevice,
            Self::TooManyLinks(_) => ErrorKind::TooManyLinks,
            Self::TooLarge(_) => ErrorKind::TooLarge,
            Self::NameTooLong(_) => ErrorKind::NameTooLong,
            Self::NoAttribute(_) => ErrorKind::NoAttribute,
            Self::AttributeNameTooLong(_) => ErrorKind::AttributeNameTooLong,
            Self::AttributeTooLarge(_) => ErrorKind::AttributeTooLarge,
            Self::NoSpace { .. } | Self::Full(_) => ErrorKind::NoSpace,
            Self::Busy(_) | Self::NotInMemory => ErrorKind::Busy,
            Self::Taken(_) => ErrorKind::InUse,
            Self::ReadOnly(_) => ErrorKind::ReadOnly,
        }
    }

    /// The nearest kind that the standard library has.
    #[must_use]
    pub fn io_kind(&self) -> io::ErrorKind {
        match self {
            Self::EndOfFile(_) => io::ErrorKind::UnexpectedEof,
            error => error.kind().into(),
        }
    }

    /// The same error of a request whose inode number came from the volume: an inode that is not in
    /// use is damage then.
    #[must_use]
    pub fn into_damage(self) -> Self {
        match self {
            Self::Stale { inode } => Self::Inode { inode, what: "it is not in use".into() },
            other => other,
        }
    }
}

impl From<AclError> for Error {
    fn from(error: AclError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<TimestampError> for Error {
    fn from(error: TimestampError) -> Self {
        Self::Invalid(error.to_string())
    }
}

impl From<SuperblockError> for Error {
    fn from(error: SuperblockError) -> Self {
        Self::Superblock(error)
    }
}

impl From<JournalDefect> for Error {
    fn from(JournalDefect { lsn, what }: JournalDefect) -> Self {
        Self::Journal { lsn, what }
    }
}

/// Keeps the message. The number is lost, as the standard library has either; its kind is the
/// nearest there is.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.io_kind(), error)
    }
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

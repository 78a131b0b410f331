//! What differs.

use undercroft_source::{Device, EntryPath, Kind, Timestamp};

/// A path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path in both trees.
    pub path: EntryPath,
    /// What was found there.
    pub found: Found,
}

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Only the left side has it, as this kind. What is below a directory is not told.
    OnlyLeft(&'static str),
    /// Only the right side has it.
    OnlyRight(&'static str),
    /// Both have it, and these differ; at least one. What is below a directory that is none in the
    /// other tree is not told.
    Changed(Vec<Change>),
}

/// A difference of two entries: the value on the left, then that on the right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Kind.
    Kind(&'static str, &'static str),
    /// Permission bits.
    Mode(u16, u16),
    /// User and group.
    Owner((u32, u32), (u32, u32)),
    /// Time of modification.
    Mtime(Timestamp, Timestamp),
    /// Length in bytes.
    Size(u64, u64),
    /// Contents. The first byte that differs, where it is known: of a file that has several names in
    /// one tree, and has them not together in the other, only digests are compared.
    Content(Option<u64>),
    /// Target of a symbolic link.
    Target(Vec<u8>, Vec<u8>),
    /// Device number.
    Device(Device, Device),
    /// An extended attribute: name and values.
    Xattr(Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>),
    /// The first of the names that both trees have which is the same file, if it is not this one.
    Links(Option<EntryPath>, Option<EntryPath>),
    /// The first byte that is in a hole of one, and not of the other.
    Holes(u64),
}

impl Change {
    /// One word for it, as programs and options have it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Kind(..) => "kind",
            Self::Mode(..) => "mode",
            Self::Owner(..) => "owner",
            Self::Mtime(..) => "mtime",
            Self::Size(..) => "size",
            Self::Content(_) => "content",
            Self::Target(..) => "target",
            Self::Device(..) => "device",
            Self::Xattr(..) => "xattrs",
            Self::Links(..) => "links",
            Self::Holes(_) => "holes",
        }
    }

    /// A sentence that says what differs, without the values.
    #[must_use]
    pub fn sentence(&self) -> &'static str {
        match self {
            Self::Kind(..) => "the kinds differ",
            Self::Mode(..) => "the modes differ",
            Self::Owner(..) => "the owners differ",
            Self::Mtime(..) => "the modification times differ",
            Self::Size(..) => "the sizes differ",
            Self::Content(_) => "the contents differ",
            Self::Target(..) => "the targets of the links differ",
            Self::Device(..) => "the device numbers differ",
            Self::Xattr(..) => "the extended attributes differ",
            Self::Links(..) => "the hard links differ",
            Self::Holes(_) => "the holes differ",
        }
    }
}

/// A kind in words.
pub(super) fn kind_word(kind: &Kind) -> &'static str {
    match kind {
        Kind::Directory => "directory",
        Kind::Regular { .. } => "regular file",
        Kind::Symlink(_) => "symbolic link",
        Kind::HardLink(_) => "hard link",
        Kind::CharDevice(_) => "character device",
        Kind::BlockDevice(_) => "block device",
        Kind::Fifo => "fifo",
        Kind::Socket => "socket",
    }
}

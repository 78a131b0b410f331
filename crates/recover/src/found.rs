//! One file that was found: what it was, and what of it is left.

use std::ops::Range;

use undercroft_xfs_format::units::FsBlock;
use undercroft_xfs_format::{DeviceNumber, Extent, FileType, Timestamp};

use crate::content::Content;
use crate::file_id::FileId;
use crate::names::Name;

/// How the size of a file is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeFrom {
    /// By the inode in its place: free, or among inodes that were given back.
    Inode,
    /// By a copy of the inode in the journal.
    Journal,
    /// By its blocks: it is somewhere in the last one, or before.
    Blocks,
}

/// What can be said of the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Every block belongs to no one, and no one is known to have had it since.
    Whole,
    /// As whole, but in blocks that another file has, which is a clone and was not changed since.
    Shared,
    /// As whole, but a file that came and went within one checkpoint of the journal, which has no trace
    /// of such files, may have had blocks of it since.
    Likely,
    /// All blocks belong to no one, but nothing tells whether blocks of an earlier time are among
    /// them, and often not how long the file was.
    Unsized,
    /// Parts were overwritten, or their place is not known.
    Partly,
    /// Nothing of the content is known.
    Lost,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Whole, Self::Shared, Self::Likely, Self::Unsized, Self::Partly, Self::Lost];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Shared => "shared",
            Self::Likely => "likely",
            Self::Unsized => "unsized",
            Self::Partly => "partly",
            Self::Lost => "lost",
        }
    }
}

/// The path of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// Names from the root down. Each can be the name of a file.
    pub names: Vec<Vec<u8>>,
    /// The names lead up to the root. Else the first is the number of the last directory known.
    pub is_complete: bool,
}

/// A file that was found: one that was removed, or one of a volume that cannot be mounted.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Its number and generation.
    pub id: FileId,
    /// What it was; `None` where nothing tells.
    pub kind: Option<FileType>,
    /// All names that it had last; none where nothing tells.
    pub paths: Vec<Path>,
    /// Bytes.
    pub size: u64,
    /// How the size is known.
    pub size_from: SizeFrom,
    /// When it was removed, where a free inode says so.
    pub removed_at: Option<Timestamp>,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits, where a copy of the inode says so.
    pub mode: Option<u16>,
    /// Last change of the content.
    pub mtime: Timestamp,
    /// Extended attributes that were inside its inode, under their full names, sorted.
    pub attributes: Vec<(Vec<u8>, Vec<u8>)>,
    /// What of its content is left.
    pub state: State,
    /// Bytes that are lost, in ascending order.
    pub losses: Vec<Range<u64>>,
    pub(crate) content: Content,
    pub(crate) names: Vec<Name>,
    /// The first sign that it gave its blocks back, else the last that it had them.
    pub(crate) vacated: u64,
    /// The latest time at which it is known to have been there.
    pub(crate) last_seen: u64,
    /// Names that it had last; 0 where nothing tells.
    pub(crate) links: u32,
    /// It may share blocks.
    pub(crate) is_reflinked: bool,
    /// When it was made; the start of 1970 on volumes that do not keep it.
    pub crtime: Timestamp,
    /// Last change of the inode that is known: it was there then.
    pub(crate) ctime: Timestamp,
    /// Nothing says how many extents it had.
    pub(crate) is_guessed: bool,
}

impl FoundFile {
    /// Files by path, those without one last.
    pub(crate) fn order(&self) -> (bool, Option<&Path>, FileId) {
        (self.paths.is_empty(), self.paths.first(), self.id)
    }

    /// Where its data is, as far as that is known, in ascending order. Blocks behind its size and blocks that
    /// were never written may be among them.
    #[must_use]
    pub fn extents(&self) -> &[Extent] {
        match &self.content {
            Content::Map(map) => &map.extents,
            _ => &[],
        }
    }

    /// Blocks of the tree that says where its data is.
    #[must_use]
    pub fn tree(&self) -> &[FsBlock] {
        match &self.content {
            Content::Map(map) => &map.tree,
            _ => &[],
        }
    }

    /// The number of a device.
    #[must_use]
    pub const fn device(&self) -> Option<DeviceNumber> {
        match self.content {
            Content::Device(number) => Some(number),
            _ => None,
        }
    }

    /// The target of a symbolic link.
    #[must_use]
    pub fn target(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

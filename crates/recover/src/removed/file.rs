//! One removed file: what it was, and what of it is left.

use std::ops::Range;

use undercroft_xfs_format::units::InodeNumber;
use undercroft_xfs_format::{
    DeviceNumber, FileType, ForkFormat, InodeCore, InodeFlags2, Timestamp,
};

use super::evidence::Evidence;
use crate::attributes;
use crate::directory;
use crate::disk::Disk;
use crate::file_id::FileId;
use crate::map::{self, Map};
use crate::names::{self, Name};
use crate::trail::{Origin, Trail};

/// How the size of a file is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeFrom {
    /// By a copy of the inode in inodes that were given back.
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
    /// All blocks belong to no one, but nothing tells how long the file was, and whether blocks of
    /// an earlier time are among them.
    Unsized,
    /// Parts were overwritten, or their place is not known.
    Partly,
    /// Nothing of the content is known.
    Lost,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Whole, Self::Shared, Self::Unsized, Self::Partly, Self::Lost];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Shared => "shared",
            Self::Unsized => "unsized",
            Self::Partly => "partly",
            Self::Lost => "lost",
        }
    }
}

/// The path that a removed file had.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// Names from the root down. Each can be the name of a file.
    pub names: Vec<Vec<u8>>,
    /// The names lead up to the root. Else the first is the number of the last directory known.
    pub is_complete: bool,
}

/// The content of a file.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    None,
    /// The target of a symbolic link.
    Bytes(Box<[u8]>),
    /// A device number.
    Device(DeviceNumber),
    Map(Map),
}

/// A file that was removed.
#[derive(Clone, Debug)]
pub struct RemovedFile {
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
    /// The latest time at which it is known to have been there.
    pub(crate) last_seen: u64,
    /// Names that it had last; 0 where nothing tells.
    pub(crate) links: u32,
    /// It may share blocks.
    pub(crate) is_reflinked: bool,
    /// When it was made.
    pub(crate) crtime: Timestamp,
    /// Last change of the inode that is known: it was there then.
    pub(crate) ctime: Timestamp,
    /// Nothing says how many extents it had.
    pub(crate) is_guessed: bool,
}

impl RemovedFile {
    /// Files by path, those without one last.
    pub(super) fn order(&self) -> (bool, Option<&Path>, FileId) {
        (self.paths.is_empty(), self.paths.first(), self.id)
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

/// All files that are gone.
pub(super) fn all(disk: &Disk, evidence: &Evidence) -> Vec<RemovedFile> {
    let mut files: Vec<_> = evidence.trails.iter().collect();
    files.sort_unstable_by_key(|(id, _)| **id);
    files.into_iter().filter_map(|(id, trail)| of_trail(disk, evidence, *id, trail)).collect()
}

fn of_trail(disk: &Disk, evidence: &Evidence, id: FileId, trail: &Trail) -> Option<RemovedFile> {
    let seen = trail.core.as_ref();
    let end = trail.end.as_ref();
    let core = seen.map(|seen| &seen.value).or(end.map(|end| &end.core))?;
    let hint = seen.map(|seen| usize::from(seen.value.forkoff) * 8).filter(|place| *place > 0);
    let literal = end.and_then(|end| end.literal.as_deref());
    let stale = literal.and_then(|bytes| names::find_shortform(&disk.geometry, bytes, hint));
    let data_len = hint.or(stale.map(|(place, _)| place));
    let (kind, content, is_guessed) = match seen {
        Some(seen) => {
            let content = known(disk, id.number, &seen.value, trail, literal);
            (seen.value.file_type(), content, false)
        }
        None => {
            let (kind, content) = guessed(disk, id.number, literal?, data_len);
            (kind, content, true)
        }
    };
    let content = with_leaves(disk, evidence, id.number, content);
    let is_guessed = is_guessed || !is_confirmed(core, &content);
    let fork = trail.attr.as_ref().map(|seen| &*seen.value).or(stale.map(|(_, fork)| fork));
    let mut names = fork.map_or(Vec::new(), |fork| names::of_shortform(&disk.geometry, fork));
    if names.is_empty() {
        names = evidence.remains.names.get(&id.number).cloned().unwrap_or_default();
    }
    names.sort();
    names.dedup();
    let (size, size_from) = size(disk, trail, &content);
    // The format has none that are longer.
    let size = size.min(i64::MAX as u64);
    Some(RemovedFile {
        id,
        kind,
        paths: Vec::new(),
        size,
        size_from,
        removed_at: end.map(|end| end.time),
        uid: core.uid,
        gid: core.gid,
        mode: seen.map(|seen| seen.value.mode & 0o7777),
        mtime: core.mtime,
        attributes: fork.map_or(Vec::new(), attributes::of_shortform),
        state: State::Lost,
        losses: Vec::new(),
        content,
        names,
        links: seen.map_or(0, |seen| seen.value.nlink),
        last_seen: seen.map_or(0, |seen| seen.lsn.0).max(end.map_or(0, |end| end.lsn.0)),
        is_reflinked: core.flags2.contains(InodeFlags2::REFLINK),
        crtime: core.crtime,
        ctime: core.ctime,
        is_guessed,
    })
}

/// Whether the map is as long as the core says: a tree's blocks may be of an earlier time.
fn is_confirmed(core: &InodeCore, content: &Content) -> bool {
    match content {
        Content::Map(map) => {
            !map.missing.is_empty() || map.extents.len() as u64 == core.data_extents
        }
        Content::None | Content::Bytes(_) | Content::Device(_) => true,
    }
}

fn size(disk: &Disk, trail: &Trail, content: &Content) -> (u64, SizeFrom) {
    if let Some(seen) = &trail.core {
        let from = match seen.origin {
            Origin::Journal => SizeFrom::Journal,
            Origin::Chunk => SizeFrom::Inode,
        };
        return (seen.value.size, from);
    }
    let bytes = match content {
        Content::Map(map) => map.end() << disk.geometry.block_log,
        Content::Bytes(bytes) => bytes.len() as u64,
        Content::None | Content::Device(_) => 0,
    };
    (bytes, SizeFrom::Blocks)
}

/// The content of a file whose core is known.
fn known(
    disk: &Disk,
    number: InodeNumber,
    core: &InodeCore,
    trail: &Trail,
    literal: Option<&[u8]>,
) -> Content {
    if core.data_format == ForkFormat::Extents && core.data_extents == 0 {
        // Nothing of it was written, if it has a size.
        return Content::Map(Map::default());
    }
    let own = trail.data.as_ref().map(|seen| &seen.value);
    let own =
        own.filter(|fork| fork.format == core.data_format && fork.extents == core.data_extents);
    let end = usize::from(core.forkoff) * 8;
    let stale = literal.map(|bytes| {
        let len = if end == 0 { bytes.len() } else { end.min(bytes.len()) };
        &bytes[..len]
    });
    let Some(fork) = own.map(|fork| &*fork.bytes).or(stale) else { return Content::None };
    match core.file_type() {
        Some(FileType::Symlink) if core.data_format == ForkFormat::Local => {
            let size = usize::try_from(core.size).unwrap_or(usize::MAX);
            fork.get(..size).map_or(Content::None, |target| Content::Bytes(target.into()))
        }
        Some(FileType::Character | FileType::Block) => {
            let number = fork.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            number.map(DeviceNumber::decode).map_or(Content::None, Content::Device)
        }
        Some(FileType::Regular | FileType::Directory | FileType::Symlink) => {
            map::of_fork(disk, number, core, fork).map_or(Content::None, Content::Map)
        }
        _ => Content::None,
    }
}

/// The content of a file of which only the area of its forks is left: nothing says what it is.
fn guessed(
    disk: &Disk,
    number: InodeNumber,
    literal: &[u8],
    data_len: Option<usize>,
) -> (Option<FileType>, Content) {
    let bytes = &literal[..data_len.unwrap_or(literal.len()).min(literal.len())];
    if let Some(map) = map::of_literal(disk, number, bytes) {
        let start = map.extents.first().and_then(|extent| disk.blocks(extent.start, 1).ok());
        let kind = start.and_then(|block| directory::kind(&disk.geometry, &block));
        let kind = kind.map_or(FileType::Regular, |_| FileType::Directory);
        return (Some(kind), Content::Map(map));
    }
    // A directory that is removed is empty: no entries, and its parent.
    let is_directory = directory::of_shortform(&disk.geometry, bytes).is_some_and(|found| {
        let parent = found.parent.filter(|parent| disk.geometry.valid_inode(*parent));
        found.entries.is_empty() && bytes[0] == 0 && parent.is_some()
    });
    if is_directory {
        return (Some(FileType::Directory), Content::None);
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let is_text = end > 0 && !bytes[..end].iter().any(u8::is_ascii_control);
    if is_text {
        return (Some(FileType::Symlink), Content::Bytes(bytes[..end].into()));
    }
    (None, Content::None)
}

/// The map of a file with what leaves of its tree in free space say of the ranges that it lacks.
fn with_leaves(disk: &Disk, evidence: &Evidence, number: InodeNumber, content: Content) -> Content {
    let Content::Map(mut map) = content else { return content };
    let mut leaves: Vec<_> = evidence.remains.leaves.get(&number).into_iter().flatten().collect();
    // The latest of each range counts.
    leaves.sort_by_key(|(lsn, _)| std::cmp::Reverse(lsn.0));
    for (_, extents) in leaves {
        map.fill(disk, extents);
    }
    Content::Map(map)
}

//! The area of the forks of a free inode, which a kernel leaves as it was.

use undercroft_xfs_format::FileType;
use undercroft_xfs_format::units::InodeNumber;

use crate::content::Content;
use crate::directory;
use crate::disk::Disk;
use crate::map;

/// The content of a file of which only the area of its forks is left: nothing says what it is.
pub(super) fn guessed(
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

/// What a removed file was, by the area of its forks alone.
pub(super) fn kind_left(disk: &Disk, number: InodeNumber, literal: &[u8]) -> Option<FileType> {
    let (kind, _) = guessed(disk, number, literal, None);
    let entries = || directory::of_shortform(&disk.geometry, literal);
    let is_directory = || {
        // As it was when it was last written to its place, with entries.
        entries().is_some_and(|found| {
            let mut numbers = found.entries.iter().map(|entry| entry.inode).chain(found.parent);
            found.parent.is_some() && numbers.all(|number| disk.geometry.valid_inode(number))
        })
    };
    kind.or_else(|| is_directory().then_some(FileType::Directory))
}

//! Single pieces of a volume, as far as they are legible: for tools that put a volume right.

use undercroft_xfs_format::units::{AgNumber, InodeNumber};
use undercroft_xfs_format::{
    AllocRecord, BufferKind, ForkFormat, Geometry, InodeChunkRecord, RmapRecord, Superblock,
};

use crate::disk::Disk;
use crate::error::RecoverError;
use crate::scan::Traces;
use crate::trail::MapFork;
use crate::{directory, map, names, trees};

pub use crate::directory::{Entries, Entry};
pub use crate::map::Map;
pub use crate::names::Name;

/// The chunks of inodes of a group, in ascending order.
///
/// # Errors
/// The header of the group or the tree is damaged; the device failed.
pub fn chunks(disk: &Disk, ag: AgNumber) -> Result<Vec<InodeChunkRecord>, RecoverError> {
    trees::inode_chunks(disk, ag)
}

/// Hands over who owns what of a group.
///
/// # Errors
/// The header of the group or the tree is damaged, perhaps behind some that were handed over; the
/// device failed.
pub fn owners(
    disk: &Disk,
    ag: AgNumber,
    visit: impl FnMut(RmapRecord),
) -> Result<(), RecoverError> {
    trees::owners(disk, ag, visit)
}

/// The free extents of a group, ascending.
///
/// # Errors
/// A header of the group or the tree is damaged; the device failed.
pub fn free(disk: &Disk, ag: AgNumber) -> Result<Vec<AllocRecord>, RecoverError> {
    Ok(trees::group_space(disk, ag)?.free)
}

/// The map that the bytes of a fork say, of a format and with so many extents; `None` if they say none.
#[must_use]
pub fn map(
    disk: &Disk,
    file: InodeNumber,
    (format, extents): (ForkFormat, u64),
    bytes: &[u8],
) -> Option<Map> {
    map::of_fork(disk, file, MapFork { format, extents, bytes })
}

/// The entries of a directory inside its inode.
#[must_use]
pub fn directory_in_inode(geometry: &Geometry, fork: &[u8]) -> Option<Entries> {
    directory::of_shortform(geometry, fork)
}

/// The entries of a block of a directory, as far as its tiling is whole; `None` of another block, or one
/// of another directory.
#[must_use]
pub fn directory_block(geometry: &Geometry, owner: InodeNumber, block: &[u8]) -> Option<Entries> {
    let kind = directory::kind(geometry, block)?;
    let is_own = directory::owner(geometry, block, kind).is_none_or(|found| found == owner);
    is_own.then(|| directory::of_block(geometry, block, kind))
}

/// The names in the attributes inside an inode.
#[must_use]
pub fn names_in_inode(geometry: &Geometry, fork: &[u8]) -> Vec<Name> {
    names::of_shortform(geometry, fork)
}

/// The names in a leaf of attributes.
#[must_use]
pub fn names_in_leaf(geometry: &Geometry, block: &[u8]) -> Vec<Name> {
    names::of_leaf(geometry, block)
}

/// The superblocks that a scan found, with the sectors where they are.
pub fn superblocks(traces: &Traces) -> impl Iterator<Item = (u64, &Superblock)> {
    traces.superblocks.iter().map(|(sector, superblock)| (*sector, superblock))
}

/// Whether a block of entries begins a directory in one block.
#[must_use]
pub fn is_directory_block(geometry: &Geometry, block: &[u8]) -> bool {
    matches!(directory::kind(geometry, block), Some(BufferKind::DirBlock | BufferKind::DirData))
}

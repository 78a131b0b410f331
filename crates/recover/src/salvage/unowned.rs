//! Blocks of version 4, which do not say whose they are: the maps of inodes do.

use undercroft_xfs_format::BufferKind;
use undercroft_xfs_format::units::InodeNumber;

use super::index::Index;
use super::inodes::Inodes;
use super::places::Places;
use crate::disk::Disk;
use crate::scan::BlockTrace;

/// Gives blocks to the inodes whose maps name them. What is left is of nobody, but for first
/// blocks of directories whose inodes are lost.
pub(super) fn own_by_maps(index: &mut Index, disk: &Disk, inodes: &Inodes) {
    let mut attributes = Places::default();
    for (owner, extents) in &inodes.attributes {
        extents.iter().for_each(|extent| attributes.add(InodeNumber(*owner), extent));
    }
    attributes.sort();
    index.owned.retain_mut(|trace| {
        let Some(block) = disk.block_at(trace.sector) else { return false };
        let places = match trace.kind {
            BufferKind::AttrLeaf => &attributes,
            _ => &inodes.directories,
        };
        let named = InodeNumber(trace.owner);
        match places.owner(block.0) {
            Some(owner) if trace.owner == BlockTrace::UNOWNED => trace.owner = owner.0,
            Some(owner) => return owner == named,
            None => return trace.owner != BlockTrace::UNOWNED && inodes.index(named).is_none(),
        }
        true
    });
}

//! Where a bulk load puts the data of files: behind the data before it, apart from metadata.
//!
//! Space near the inode, the rule for files that grow on a volume in use, would alternate runs of
//! data with inode chunks and directory blocks, and every one of them would cut a write in two. A
//! bulk load knows that more files follow. So it leaves a share of each group behind the group's
//! first inode to metadata and lets data begin after it; from then on data follows data. Files of
//! a directory stay together in the group of their directory, in the order of their names.
//!
//! These are targets only: where the share is too small or too large for a tree, the allocator
//! finds the nearest space on either side of it.

use crate::format::Extent;
use crate::geometry::Geometry;
use crate::units::{AgBlock, FsBlock, InodeNumber};

/// One block in this many of a group is left to metadata at first. Inodes of the usual 512 bytes
/// and their directories take some 4 % of a tree of source code, whose files are small.
const METADATA_SHARE: u32 = 16;

/// Where data of a bulk load goes next in each group.
#[derive(Debug)]
pub struct DataPlacement {
    /// By group: the block behind the last data, once there is some.
    next: Vec<Option<AgBlock>>,
}

impl DataPlacement {
    /// No data was placed yet.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self { next: vec![None; geometry.ag_count as usize] }
    }

    /// The block at which data of `inode` should be.
    pub(super) fn target(&self, geometry: &Geometry, inode: InodeNumber) -> FsBlock {
        let near = geometry.inode_fs_block(inode);
        let (ag, block) = geometry.split_block(near);
        let length = geometry.ag_length(ag);
        let first = || AgBlock(block.0.saturating_add(length / METADATA_SHARE));
        let next = self.next.get(ag.0 as usize).copied().flatten().unwrap_or_else(first);
        if next.0 < length { geometry.fs_block(ag, next) } else { near }
    }

    /// Data was placed in `extent`.
    pub(super) fn placed(&mut self, geometry: &Geometry, extent: &Extent) {
        let (ag, start) = geometry.split_block(extent.start);
        if let Some(next) = self.next.get_mut(ag.0 as usize) {
            *next = Some(AgBlock(start.0 + extent.len));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkfs::{self, MkfsOptions};
    use crate::units::{AgInode, AgNumber, FileBlock};
    use uuid::Uuid;

    fn geometry() -> Geometry {
        mkfs::plan(&MkfsOptions::new(1 << 30, Uuid::nil())).unwrap().geometry()
    }

    #[test]
    fn the_first_data_leaves_room_for_metadata_and_the_next_follows_it() {
        let geometry = geometry();
        let mut placement = DataPlacement::new(&geometry);
        let inode = geometry.root_inode;
        let (ag, near) = geometry.split_block(geometry.inode_fs_block(inode));
        let first = placement.target(&geometry, inode);
        let share = geometry.ag_length(ag) / METADATA_SHARE;
        assert_eq!(geometry.split_block(first), (ag, AgBlock(near.0 + share)));
        let extent = Extent { offset: FileBlock(0), start: first, len: 7, unwritten: false };
        placement.placed(&geometry, &extent);
        assert_eq!(placement.target(&geometry, inode), FsBlock(first.0 + 7));
        // Other groups are not concerned.
        let other = geometry.inode_number(AgNumber(1), AgInode(64));
        assert_eq!(geometry.split_block(placement.target(&geometry, other)).0, AgNumber(1));
    }

    #[test]
    fn behind_the_end_of_a_group_data_goes_near_its_inode() {
        let geometry = geometry();
        let mut placement = DataPlacement::new(&geometry);
        let inode = geometry.root_inode;
        let near = geometry.inode_fs_block(inode);
        let (ag, _) = geometry.split_block(near);
        let length = geometry.ag_length(ag);
        let start = geometry.fs_block(ag, AgBlock(length - 5));
        let extent = Extent { offset: FileBlock(0), start, len: 5, unwritten: false };
        placement.placed(&geometry, &extent);
        assert_eq!(placement.target(&geometry, inode), near);
    }
}

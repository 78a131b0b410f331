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
    use crate::format::FileType;
    use crate::mkfs::{self, MkfsOptions};
    use crate::ops::{self, NewInode};
    use crate::units::{AgInode, AgNumber, FileBlock};
    use crate::volume::Volume;
    use std::sync::Arc;
    use undercroft_block::{BlockDevice, MemoryDevice};
    use undercroft_judges::random::Random;
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

    /// A new volume of 300 MiB.
    fn volume() -> Volume {
        let superblock = mkfs::plan(&MkfsOptions::new(300 << 20, Uuid::nil())).unwrap();
        let device: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(300 << 20));
        mkfs::begin(&device, superblock, &NewInode::new(FileType::Directory, 0o755)).unwrap()
    }

    /// Files of so many blocks in the root directory, until one finds no space: their extents.
    fn fill(volume: &Volume, lengths: impl IntoIterator<Item = u64>) -> Vec<Extent> {
        let mut placement = DataPlacement::new(volume.geometry());
        let mut extents = Vec::new();
        for (number, blocks) in lengths.into_iter().enumerate() {
            let mut trans = volume.begin().unwrap();
            let mut root = volume.lock_inode(volume.geometry().root_inode).unwrap();
            let name = format!("{number}");
            let new = NewInode::new(FileType::Regular, 0o644);
            let made = ops::create(&mut trans, &mut root, name.as_bytes(), &new);
            let Ok(mut inode) = made else { break };
            let size = blocks << volume.geometry().block_log;
            let data = std::iter::once(0..size);
            let map = ops::allocate_file(&mut trans, &mut inode, size, data, &mut placement);
            let Ok(map) = map else { break };
            trans.commit(&mut [&mut root, &mut inode]).unwrap();
            extents.extend(map);
        }
        extents
    }

    #[test]
    fn files_come_out_of_one_room_behind_each_other() {
        let volume = volume();
        // The third is too large for a room, so the first one ends before it.
        let lengths = [3, 1, 300, 2, 7];
        let extents = fill(&volume, lengths);
        let first = extents[0].start;
        let (ag, _) = volume.geometry().split_block(first);
        let starts: Vec<_> = extents.iter().map(|extent| extent.start.0 - first.0).collect();
        assert_eq!(starts, [0, 3, 4, 304, 306]);
        let free = |volume: &Volume| {
            let mut guard = volume.lock_group(ag, true).unwrap().unwrap();
            let group = guard.state();
            (group.agf.free_blocks, group.room.map(|room| room.len))
        };
        let (before, room) = free(&volume);
        assert_eq!(room, Some(256 - 9));
        mkfs::finish(&volume, false).unwrap();
        assert_eq!(free(&volume), (before + 256 - 9, None));
    }

    #[test]
    fn what_is_written_out_has_no_rooms() {
        let volume = volume();
        let free = volume.counters().unwrap().free_blocks;
        fill(&volume, [3]);
        assert!(volume.free_space().has_rooms());
        volume.sync().unwrap();
        assert!(!volume.free_space().has_rooms());
        assert_eq!(volume.counters().unwrap().free_blocks, free - 3);
    }

    #[test]
    fn a_file_can_have_the_blocks_of_a_room_that_goes_back_before_it() {
        let volume = volume();
        let free = || volume.free_space().available();
        // Ten files out of a room of 256 blocks, and one that needs 200 of those that are left in it.
        let lengths = std::iter::repeat_n(1, 10).chain(std::iter::once_with(|| free() + 200));
        let before = free();
        let extents = fill(&volume, lengths);
        let blocks: u64 = extents.iter().map(|extent| u64::from(extent.len)).sum();
        assert!(extents.len() > 10 && blocks > before - 100, "{blocks} of {before} blocks");
        let after = free();
        mkfs::finish(&volume, false).unwrap();
        assert_eq!(free(), after);
        let counters = volume.counters().unwrap();
        let counted = counters.free_blocks - volume.reserved_blocks().unwrap();
        assert_eq!(counted, after + 8 * 4, "eight blocks of each group are set aside");
    }

    #[test]
    fn no_block_is_missing_for_lying_in_a_room() {
        let volume = volume();
        let whole = volume.free_space().available();
        let mut random = Random::new(1);
        let count = fill(&volume, std::iter::repeat_with(|| 1 + random.below(4))).len();
        assert!(count > 20_000, "{count} files");
        let left = volume.free_space().available();
        // A chunk of inodes takes eight.
        assert!(left < 8 && !volume.free_space().has_rooms(), "{left} blocks of {whole} are left");
    }
}

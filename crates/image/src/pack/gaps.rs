//! Blocks between inode chunks that no chunk can take.
//!
//! Blocks of directories and of attributes lie near their inodes, so often right behind the newest chunk,
//! and the next chunk begins at the next multiple of its alignment. Later blocks and small files fill
//! what is between, as far as there are any; in a tree of empty files chunks are all that comes. How
//! much stays depends on the order of the entries.
//!
//! This follows the decisions of the allocator (`undercroft_xfs::inode_allocation`): inodes of directories go
//! to the next group in turn, others to the group of their parent; a chunk goes behind the newest or to the
//! first place that is aligned; other blocks go to the nearest free ones. Groups have no end here, and data
//! lies apart.

use std::collections::BTreeMap;
use undercroft_xfs::Geometry;

/// Where an inode is, and where blocks near it go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) group: u32,
    near: u32,
}

/// Groups as they fill.
#[derive(Clone, Debug)]
pub(super) struct Gaps {
    sizes: Sizes,
    groups: Vec<Group>,
    /// The group of the next directory.
    next: u32,
}

/// Lengths in blocks.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    chunk: u32,
    alignment: u32,
    /// A part of a chunk that can be allocated alone, and its alignment; 0 if none can.
    piece: u32,
    chunk_inodes: u32,
    inodes_per_block_log: u8,
}

#[derive(Clone, Debug, Default)]
struct Group {
    /// The first block behind all that was taken.
    end: u32,
    /// Free blocks in front of it: lengths by starts.
    free: BTreeMap<u32, u32>,
    newest: u32,
    free_inodes: u32,
}

impl Gaps {
    /// The root directory has the first inode of the first group; two files of the volume follow.
    pub(super) fn new(geometry: &Geometry) -> Self {
        let sizes = Sizes {
            chunk: geometry.chunk_blocks(),
            alignment: geometry.cluster_alignment(),
            piece: if geometry.features.sparse_inodes() { geometry.sparse_alignment } else { 0 },
            chunk_inodes: geometry.chunk_inodes(),
            inodes_per_block_log: geometry.inodes_per_block_log(),
        };
        let count = geometry.ag_count.max(1);
        let mut gaps = Self { sizes, groups: vec![Group::default(); count as usize], next: 0 };
        for _ in 0..3 {
            gaps.groups[0].take_inode(&sizes);
        }
        gaps
    }

    /// Takes an inode for a new directory.
    pub(super) fn directory(&mut self) -> Place {
        let group = self.next;
        self.next = (group + 1) % self.groups.len() as u32;
        self.inode(group)
    }

    /// Whether the next inode in a group needs a new chunk.
    pub(super) fn needs_chunk(&self, group: u32) -> bool {
        self.groups[group as usize].free_inodes == 0
    }

    /// Takes an inode in a group.
    pub(super) fn inode(&mut self, group: u32) -> Place {
        let near = self.groups[group as usize].take_inode(&self.sizes);
        Place { group, near }
    }

    /// Takes blocks near an inode, one after the other.
    pub(super) fn blocks(&mut self, place: &mut Place, count: u64) {
        let group = &mut self.groups[place.group as usize];
        for _ in 0..count {
            place.near = group.take_nearest(place.near) + 1;
        }
    }

    /// Free blocks in front of the ends that chunks and their pieces cannot take.
    pub(super) fn lost(&self) -> u64 {
        let all = self.groups.iter().flat_map(|group| &group.free);
        all.map(|(start, len)| u64::from(self.sizes.lost(*start, *len))).sum()
    }
}

impl Sizes {
    /// What pieces of chunks leave of free blocks. A group serves a request for an aligned piece only
    /// where it is certain to fit.
    fn lost(&self, start: u32, len: u32) -> u32 {
        let Self { piece, .. } = *self;
        if piece == 0 || len < 2 * piece - 1 {
            return len;
        }
        let aligned = start.next_multiple_of(piece);
        len - (start + len - aligned) / piece * piece
    }
}

impl Group {
    /// Takes an inode; the block that it is in.
    fn take_inode(&mut self, sizes: &Sizes) -> u32 {
        if self.free_inodes == 0 {
            let start = self.end.next_multiple_of(sizes.alignment);
            if start > self.end {
                self.free.insert(self.end, start - self.end);
            }
            (self.newest, self.end) = (start, start + sizes.chunk);
            self.free_inodes = sizes.chunk_inodes;
        }
        let index = sizes.chunk_inodes - self.free_inodes;
        self.free_inodes -= 1;
        self.newest + (index >> sizes.inodes_per_block_log)
    }

    /// Takes the free block that is nearest to `near`.
    fn take_nearest(&mut self, near: u32) -> u32 {
        let before = self.free.range(..=near).next_back().map(|(start, len)| (*start, *len));
        let behind = self.free.range(near.saturating_add(1)..).next();
        let behind = behind.map(|(start, len)| (*start, *len));
        let left = before.map(|(start, len)| near.min(start + len - 1));
        let right = behind.map_or(self.end.max(near), |(start, _)| start);
        let block = left.filter(|left| near - left <= right - near).unwrap_or(right);
        match (before, behind) {
            (Some(run), _) if left == Some(block) => self.take(run, block),
            (_, Some(run)) => self.take(run, block),
            _ => self.end = block + 1,
        }
        block
    }

    /// Takes one block of a free run.
    fn take(&mut self, (start, len): (u32, u32), block: u32) {
        self.free.remove(&start);
        let parts = [(start, block - start), (block + 1, start + len - block - 1)];
        self.free.extend(parts.into_iter().filter(|(_, len)| *len > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use undercroft_xfs::mkfs::{self, Feature, MkfsOptions};
    use uuid::Uuid;

    /// Chunks of 8 blocks; they are aligned to 8, and have pieces of 4, or they are aligned to 4.
    fn gaps(sparse: bool) -> Gaps {
        let mut options = MkfsOptions::new(1 << 30, Uuid::nil());
        options.features.push((Feature::Sparse, sparse));
        let gaps = Gaps::new(&mkfs::plan(&options).unwrap().geometry());
        let Sizes { chunk, alignment, piece, .. } = gaps.sizes;
        assert_eq!((chunk, alignment, piece), if sparse { (8, 8, 4) } else { (8, 4, 0) });
        gaps
    }

    fn fill(gaps: &mut Gaps, group: u32) {
        gaps.inode(group);
        while !gaps.needs_chunk(group) {
            gaps.inode(group);
        }
    }

    #[test]
    fn chunks_alone_leave_nothing() {
        let mut gaps = gaps(true);
        (0..10).for_each(|_| fill(&mut gaps, 0));
        assert_eq!((gaps.groups[0].end, gaps.lost()), (80, 0));
    }

    #[test]
    fn a_block_behind_a_chunk_costs_the_next_one_its_alignment() {
        // One block leaves seven, of which a piece takes four; two leave too few for a piece.
        let cases = [(true, 1, 24, 3), (true, 2, 24, 6), (false, 1, 20, 3), (false, 2, 20, 2)];
        for (sparse, blocks, end, lost) in cases {
            let mut gaps = gaps(sparse);
            fill(&mut gaps, 0);
            gaps.blocks(&mut Place { group: 0, near: 4 }, blocks);
            fill(&mut gaps, 0);
            assert_eq!((gaps.groups[0].end, gaps.lost()), (end, lost), "{sparse}, {blocks} blocks");
        }
    }

    #[test]
    fn later_blocks_fill_what_is_near() {
        let mut gaps = gaps(true);
        fill(&mut gaps, 0);
        let mut directory = Place { group: 0, near: 4 };
        gaps.blocks(&mut directory, 2);
        fill(&mut gaps, 0);
        assert_eq!(gaps.lost(), 6);
        // The seventh finds its place behind the second chunk.
        gaps.blocks(&mut directory, 7);
        assert_eq!((gaps.groups[0].end, gaps.lost()), (25, 0));
    }

    #[test]
    fn directories_go_to_all_groups_in_turn() {
        let mut gaps = gaps(true);
        let groups: Vec<_> = (0..6).map(|_| gaps.directory().group).collect();
        assert_eq!(groups, [0, 1, 2, 3, 0, 1]);
        assert!(!gaps.needs_chunk(1));
    }
}

//! The header of a B+tree block and the arithmetic of what fits behind it.
//!
//! Four headers exist: short (trees of an allocation group, 32-bit pointers) and long (trees of a
//! file, 64-bit pointers), each with or without the self-describing part of v5 volumes. Behind the
//! header a leaf holds records back to back; a node holds an array of keys sized for the maximum
//! and then an array of pointers (docs/format/btrees.md).

use crate::bytes::{EditBytes, be16, be32, be64};
use crate::{HeaderFields, TreeKind};

/// No tree of any legal volume is higher; a level beyond it is never followed.
pub const MAX_TREE_HEIGHT: u8 = 16;

/// Which of the four headers a block carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderLayout {
    /// Self-describing (v5): own address, sequence number, volume, owner and checksum.
    pub crc: bool,
    /// 64-bit sibling pointers.
    pub long: bool,
}

/// The fields of the header of a new block.
#[derive(Clone, Copy, Debug)]
pub struct NewHeader {
    /// Level, 0 is a leaf.
    pub level: u16,
    /// Own address in units of 512 bytes.
    pub sector: u64,
    /// Allocation group or inode number.
    pub owner: u64,
    /// Volume identifier of metadata.
    pub uuid: [u8; 16],
}

impl HeaderLayout {
    /// The header of blocks of `tree`; `crc` on v5 volumes.
    #[must_use]
    pub const fn new(tree: TreeKind, crc: bool) -> Self {
        Self { crc, long: tree.long_pointers() }
    }

    /// Length of the header in bytes.
    #[must_use]
    pub const fn header_len(self) -> usize {
        match (self.crc, self.long) {
            (true, true) => 72,
            (true, false) => 56,
            (false, true) => 24,
            (false, false) => 16,
        }
    }

    /// Magic number.
    #[must_use]
    pub fn magic(bytes: &[u8]) -> u32 {
        be32(bytes, 0)
    }

    /// Level, 0 is a leaf.
    #[must_use]
    pub fn level(bytes: &[u8]) -> u16 {
        be16(bytes, 4)
    }

    /// Number of records or of key and pointer pairs.
    #[must_use]
    #[inline]
    pub fn numrecs(bytes: &[u8]) -> u16 {
        be16(bytes, Self::NUMRECS)
    }

    /// Offset of the number of records.
    pub const NUMRECS: usize = 6;

    /// Offset of the pointer to the left sibling.
    #[must_use]
    pub const fn left(self) -> usize {
        8
    }

    /// Offset of the pointer to the right sibling.
    #[must_use]
    pub const fn right(self) -> usize {
        if self.long { 16 } else { 12 }
    }

    /// Whether the block is alone on its level.
    #[must_use]
    pub fn is_alone(self, bytes: &[u8]) -> bool {
        if self.long {
            be64(bytes, self.left()) == u64::MAX && be64(bytes, self.right()) == u64::MAX
        } else {
            be32(bytes, self.left()) == u32::MAX && be32(bytes, self.right()) == u32::MAX
        }
    }

    /// Where the self-describing fields are; `None` on v4 volumes, which have none.
    #[must_use]
    pub const fn stamps(self) -> Option<HeaderFields> {
        match (self.crc, self.long) {
            (false, _) => None,
            (true, false) => Some(HeaderFields::SHORT_TREE),
            (true, true) => Some(HeaderFields::LONG_TREE),
        }
    }

    /// Owner of the block: allocation group or inode; `None` on v4 volumes.
    #[must_use]
    pub fn owner(self, bytes: &[u8]) -> Option<u64> {
        let at = self.stamps()?.owner;
        Some(if self.long { be64(bytes, at) } else { u64::from(be32(bytes, at)) })
    }

    /// Own address of the block in units of 512 bytes; `None` on v4 volumes.
    #[must_use]
    pub fn blkno(self, bytes: &[u8]) -> Option<u64> {
        Some(be64(bytes, self.stamps()?.blkno))
    }

    /// Magic number of the blocks of `tree` under this layout; `None` where the tree needs v5.
    #[must_use]
    pub const fn magic_of(self, tree: TreeKind) -> Option<u32> {
        if self.crc { Some(tree.magic_v5()) } else { tree.magic_v4() }
    }

    /// Writes the header of an empty block without siblings into a zeroed block. The sequence
    /// number and the checksum are stamped when the block is written back.
    pub fn init(self, edit: &mut EditBytes<'_>, tree: TreeKind, header: &NewHeader) {
        // A tree that needs v5 is never made on a v4 volume.
        edit.put_be32(0, self.magic_of(tree).unwrap_or_else(|| tree.magic_v5()));
        edit.put_be16(4, header.level);
        edit.put_be16(Self::NUMRECS, 0);
        edit.region(self.left()..if self.long { 24 } else { 16 }).fill(0xff);
        let Some(at) = self.stamps() else { return };
        edit.put_be64(at.blkno, header.sector);
        edit.put_bytes(at.uuid, &header.uuid);
        if self.long {
            edit.put_be64(at.owner, header.owner);
        } else {
            // An allocation group number has 32 bits.
            edit.put_bytes(at.owner, &header.owner.to_be_bytes()[4..]);
        }
    }
}

/// Bytes of one record, one stored key (low and high together in overlapping trees) and one
/// pointer of `tree`.
const fn entry_lens(tree: TreeKind) -> (usize, usize, usize) {
    match tree {
        TreeKind::Bnobt | TreeKind::Cntbt => (8, 8, 4),
        TreeKind::Inobt | TreeKind::Finobt => (16, 4, 4),
        TreeKind::Rmapbt => (24, 40, 4),
        TreeKind::Refcountbt => (12, 4, 4),
        TreeKind::Bmbt => (16, 8, 8),
    }
}

/// Most records of a leaf and most entries of a node of `tree`, for blocks of `block_size` bytes.
#[must_use]
pub const fn block_capacity(
    tree: TreeKind,
    layout: HeaderLayout,
    block_size: usize,
) -> (usize, usize) {
    let room = block_size.saturating_sub(layout.header_len());
    let (record, key, pointer) = entry_lens(tree);
    (room / record, room / (key + pointer))
}

/// What bounds the height of a tree (docs/format/btrees.md#heights).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeightLimit {
    /// The tree holds at most this many records: free space, inode, reference count trees, and
    /// reverse mappings without shared blocks.
    Records(u64),
    /// Any number of records, but all blocks of the tree fit this many: reverse mappings where
    /// blocks are shared.
    Blocks(u64),
    /// Mappings of a file: at most this many, under a root of at least this many entries (3 in a
    /// data fork, 2 in an attribute fork).
    Mappings {
        /// Most mappings of the fork.
        count: u64,
        /// Entries any root of such a fork can hold.
        root_entries: u64,
    },
}

/// The shape of one tree: what its blocks look like and how high it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeGeometry {
    /// Which header the blocks carry.
    pub layout: HeaderLayout,
    /// Bytes per block.
    pub block_size: usize,
    /// Most records in a leaf.
    pub leaf_max: usize,
    /// Most entries in a node.
    pub node_max: usize,
    /// Most levels, the root included.
    pub max_height: u8,
    /// Inode trees: records carry a mask of missing inodes (feature SPINODES).
    pub sparse_inodes: bool,
}

impl TreeGeometry {
    /// The shape of `tree` with blocks of `block_size` bytes; `crc` on v5 volumes. Inode records
    /// are taken to be in sparse form if `sparse_inodes`.
    #[must_use]
    pub fn new(
        tree: TreeKind,
        block_size: usize,
        crc: bool,
        sparse_inodes: bool,
        limit: HeightLimit,
    ) -> Self {
        let layout = HeaderLayout::new(tree, crc);
        let (leaf_max, node_max) = block_capacity(tree, layout, block_size);
        let max_height = max_height((leaf_max / 2) as u64, (node_max / 2) as u64, limit);
        Self { layout, block_size, leaf_max, node_max, max_height, sparse_inodes }
    }

    /// Most entries of a block at `level`.
    #[must_use]
    #[inline]
    pub const fn max_entries(&self, level: usize) -> usize {
        if level == 0 { self.leaf_max } else { self.node_max }
    }

    /// Least entries of a block at `level`, roots exempt.
    #[must_use]
    pub const fn min_entries(&self, level: usize) -> usize {
        self.max_entries(level) / 2
    }
}

/// Levels of the highest legal tree. A fill below 2 per node cannot occur with legal block sizes
/// and is taken as 2 so that the iteration ends.
fn max_height(leaf_min: u64, node_min: u64, limit: HeightLimit) -> u8 {
    let (leaf_min, node_min) = (leaf_min.max(1), node_min.max(2));
    let mut height = 1;
    match limit {
        HeightLimit::Records(records) => {
            let mut blocks = records.div_ceil(leaf_min);
            while blocks > 1 {
                blocks = blocks.div_ceil(node_min);
                height += 1;
            }
        }
        HeightLimit::Blocks(blocks) => {
            let (mut on_level, mut left) = (2_u64, blocks.saturating_sub(1));
            while on_level < left {
                left -= on_level;
                on_level = on_level.saturating_mul(node_min);
                height += 1;
            }
        }
        HeightLimit::Mappings { count, root_entries } => {
            let mut blocks = count.div_ceil(leaf_min).max(2);
            while blocks > 1 {
                blocks = if blocks <= root_entries.max(2) { 1 } else { blocks.div_ceil(node_min) };
                height += 1;
            }
        }
    }
    height.min(MAX_TREE_HEIGHT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Changes;

    /// The table of docs/format/btrees.md#trees.
    #[test]
    fn capacities_are_those_of_the_reference() {
        let expected = [
            (TreeKind::Bnobt, [(121, 80), (249, 166), (505, 336), (2041, 1360), (8185, 5456)]),
            (TreeKind::Cntbt, [(121, 80), (249, 166), (505, 336), (2041, 1360), (8185, 5456)]),
            (TreeKind::Inobt, [(60, 121), (124, 249), (252, 505), (1020, 2041), (4092, 8185)]),
            (TreeKind::Finobt, [(60, 121), (124, 249), (252, 505), (1020, 2041), (4092, 8185)]),
            (TreeKind::Rmapbt, [(40, 22), (83, 45), (168, 91), (680, 371), (2728, 1488)]),
            (TreeKind::Refcountbt, [(80, 121), (166, 249), (336, 505), (1360, 2041), (5456, 8185)]),
            (TreeKind::Bmbt, [(59, 59), (123, 123), (251, 251), (1019, 1019), (4091, 4091)]),
        ];
        for (tree, capacities) in expected {
            for (size, capacity) in [1024, 2048, 4096, 16384, 65536].into_iter().zip(capacities) {
                let layout = HeaderLayout::new(tree, true);
                assert_eq!(block_capacity(tree, layout, size), capacity, "{tree:?} {size}");
            }
        }
    }

    #[test]
    fn heights_stay_within_the_limits() {
        let height =
            |tree, size, limit| TreeGeometry::new(tree, size, true, true, limit).max_height;
        // 2^28 blocks per group (1 TiB of 4 KiB): ceil(2^27 / 252) leaves, then nodes of 168.
        assert_eq!(height(TreeKind::Bnobt, 4096, HeightLimit::Records((1 << 27) + 1)), 4);
        assert_eq!(height(TreeKind::Rmapbt, 4096, HeightLimit::Blocks(1 << 28)), 6);
        assert_eq!(height(TreeKind::Rmapbt, 4096, HeightLimit::Blocks(1)), 1);
        let mappings = HeightLimit::Mappings { count: (1 << 31) - 1, root_entries: 3 };
        assert_eq!(height(TreeKind::Bmbt, 4096, mappings), 5);
        let few = HeightLimit::Mappings { count: 1, root_entries: 3 };
        assert_eq!(height(TreeKind::Bmbt, 4096, few), 2);
        let absurd = HeightLimit::Mappings { count: u64::MAX, root_entries: 3 };
        assert!(height(TreeKind::Bmbt, 512, absurd) <= MAX_TREE_HEIGHT);
    }

    #[test]
    fn a_new_header_reads_back() {
        let header = NewHeader { level: 2, sector: 8, owner: 0x1234_5678, uuid: [7; 16] };
        for (tree, crc) in
            [(TreeKind::Inobt, true), (TreeKind::Bmbt, true), (TreeKind::Bmbt, false)]
        {
            let layout = HeaderLayout::new(tree, crc);
            let (mut bytes, mut changes) = (vec![0; 512], Changes::default());
            layout.init(&mut EditBytes::new(&mut bytes, &mut changes), tree, &header);
            assert_eq!(layout.magic_of(tree), Some(HeaderLayout::magic(&bytes)));
            assert_eq!(HeaderLayout::level(&bytes), 2);
            assert_eq!(HeaderLayout::numrecs(&bytes), 0);
            assert!(layout.is_alone(&bytes));
            assert_eq!(layout.owner(&bytes), crc.then_some(0x1234_5678));
            assert_eq!(layout.blkno(&bytes), crc.then_some(8));
            assert!(bytes[layout.header_len()..].iter().all(|byte| *byte == 0));
        }
    }
}

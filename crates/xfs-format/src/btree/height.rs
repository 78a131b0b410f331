//! How high the trees of a volume can grow (docs/format/btrees.md#heights).
//!
//! The limits assume blocks that are only half full. Verifiers refuse higher trees, and the
//! reservations of the log are computed from them.

use crate::geometry::{Geometry, INODES_PER_CHUNK};

/// Maximum number of levels of every kind of tree of one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeHeights {
    /// Free space by block, and by size.
    pub alloc: u32,
    /// Inode trees.
    pub inode: u32,
    /// Reference counts; 0 without the feature.
    pub refcount: u32,
    /// Reverse mappings; 0 without the feature.
    pub rmap: u32,
    /// Mappings of a data fork.
    pub bmap_data: u32,
    /// Mappings of an attribute fork.
    pub bmap_attr: u32,
}

impl TreeHeights {
    /// Limits of a volume.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        let limits = Limits::new(geometry);
        let blocks = u64::from(geometry.ag_blocks);
        let features = &geometry.features;
        let inode_bits = geometry.ag_block_log + geometry.inodes_per_block_log();
        let inode_records = (1_u64 << inode_bits) / u64::from(INODES_PER_CHUNK);
        let (data, attr) = if features.nrext64() {
            ((1 << 48) - 1, (1 << 32) - 1)
        } else {
            ((1 << 31) - 1, (1 << 15) - 1)
        };
        Self {
            alloc: height(limits.short(8, 12), blocks.div_ceil(2)),
            inode: height(limits.short(16, 8), inode_records),
            refcount: if features.reflink() { height(limits.short(12, 8), blocks) } else { 0 },
            rmap: match (features.rmapbt(), features.reflink()) {
                (false, _) => 0,
                (true, false) => height(limits.short(24, 44), blocks),
                (true, true) => full_group_height(limits.short(24, 44).1, blocks),
            },
            bmap_data: inode_root_height(limits.long(16, 16), data, 3),
            bmap_attr: inode_root_height(limits.long(16, 16), attr, 2),
        }
    }
}

/// Least number of records of a leaf and of a node.
type Minimum = (u64, u64);

struct Limits {
    block_size: u64,
    short_header: u64,
    long_header: u64,
}

impl Limits {
    fn new(geometry: &Geometry) -> Self {
        let (short_header, long_header) = if geometry.features.crc { (56, 72) } else { (16, 24) };
        Self { block_size: 1 << geometry.block_log, short_header, long_header }
    }

    fn short(&self, record: u64, pair: u64) -> Minimum {
        let space = self.block_size - self.short_header;
        (space / record / 2, space / pair / 2)
    }

    fn long(&self, record: u64, pair: u64) -> Minimum {
        let space = self.block_size - self.long_header;
        (space / record / 2, space / pair / 2)
    }
}

fn height((leaf, node): Minimum, records: u64) -> u32 {
    let mut blocks = records.div_ceil(leaf);
    let mut levels = 1;
    while blocks > 1 {
        blocks = blocks.div_ceil(node);
        levels += 1;
    }
    levels
}

/// With shared blocks one block can have any number of reverse mappings: only the space for the
/// tree itself limits it.
fn full_group_height(node: u64, ag_blocks: u64) -> u32 {
    let (mut level_blocks, mut left, mut levels) = (2_u64, ag_blocks - 1, 1);
    while level_blocks < left {
        left -= level_blocks;
        level_blocks *= node;
        levels += 1;
    }
    levels
}

/// Height of a tree whose root has `root_pairs` places in an inode.
fn inode_root_height((leaf, node): Minimum, extents: u64, root_pairs: u64) -> u32 {
    let mut blocks = extents.div_ceil(leaf);
    let mut levels = 1;
    while blocks > 1 {
        blocks = if blocks <= root_pairs { 1 } else { blocks.div_ceil(node) };
        levels += 1;
    }
    levels
}

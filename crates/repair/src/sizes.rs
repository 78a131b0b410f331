//! The sizes in a superblock, for a device that is too short for them.

use undercroft_xfs::format::{Geometry, bytes};

/// Blocks of the shortest group.
const GROUP_MIN: u64 = 64;

/// Where a superblock has its sizes.
mod at {
    pub(super) const BLOCKS: usize = 8;
    pub(super) const GROUPS: usize = 88;
}

/// Makes a superblock that of a volume that ends with a device of so many bytes; whether that can be.
pub(crate) fn shorten(sector: &mut [u8], geometry: &Geometry, capacity: u64) -> bool {
    let group = u64::from(geometry.ag_blocks);
    let mut blocks = capacity >> geometry.block_log;
    if blocks % group < GROUP_MIN {
        blocks -= blocks % group;
    }
    let log = geometry.split_block(geometry.log_start);
    let log_end = u64::from(log.0.0) * group + u64::from(log.1.0) + u64::from(geometry.log_blocks);
    if blocks < GROUP_MIN || log_end > blocks {
        return false;
    }
    bytes::put_be64(sector, at::BLOCKS, blocks);
    bytes::put_be32(sector, at::GROUPS, blocks.div_ceil(group) as u32);
    true
}

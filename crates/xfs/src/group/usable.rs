//! How much of a group can be asked for.
//!
//! Before anything changes the free-space or reverse-mapping trees of a group, its free list must
//! hold enough blocks for the worst case of splits. docs/algorithms/freelist.md#length and
//! docs/algorithms/freelist.md#admission.

use crate::format::{Agf, TreeHeights};
use crate::geometry::Geometry;

/// Blocks that the free list must hold now.
pub(crate) fn free_list_needed(geometry: &Geometry, limits: &TreeHeights, agf: &Agf) -> u32 {
    // Every level splits twice, once for the operation and once to fill the list again; a root
    // does not grow beyond the limit.
    let tree = |level: u32, limit: u32| 2 * (level + 1).min(limit) - 2;
    let mut need = tree(agf.bnobt.levels, limits.alloc) + tree(agf.cntbt.levels, limits.alloc);
    if geometry.features.rmapbt() {
        need += tree(agf.rmapbt.levels, limits.rmap);
    }
    need
}

/// Longest extent that any request can get from a group of the volume that is empty.
pub(crate) fn max_usable(geometry: &Geometry) -> u32 {
    let features = &geometry.features;
    let trees = 3 + [features.finobt(), features.rmapbt(), features.reflink()]
        .into_iter()
        .map(u32::from)
        .sum::<u32>();
    geometry.ag_blocks.saturating_sub(geometry.ag_header_blocks() + 4 + trees)
}

/// Longest extent that a request with the outstanding reservations `reserved` can get.
pub(crate) fn longest_within(geometry: &Geometry, agf: &Agf, need: u32, reserved: u32) -> u32 {
    let elsewhere = agf.free_blocks.saturating_sub(agf.longest);
    let delta = need.saturating_sub(agf.free_list_count) + reserved.saturating_sub(elsewhere);
    if agf.longest > delta {
        (agf.longest - delta).min(max_usable(geometry))
    } else {
        u32::from(agf.free_list_count > 0 || agf.longest > 0)
    }
}

/// Longest extent that an ordinary request can get from the group now, in blocks.
pub(super) fn longest_usable(
    geometry: &Geometry,
    limits: &TreeHeights,
    agf: &Agf,
    reserved: u32,
) -> u32 {
    longest_within(geometry, agf, free_list_needed(geometry, limits, agf), reserved)
}

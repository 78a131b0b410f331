//! Blocks of a group that are kept free so that its trees can grow when it is full.
//!
//! A kernel makes the same reservations when it mounts a volume, and complains about one whose
//! groups were filled below them. Sizes: docs/algorithms/reserved-space.md#reservations-of-groups.

use crate::format::{Agf, Agi};
use crate::geometry::Geometry;
use crate::space::Pool;
use crate::units::AgNumber;

/// The most blocks that the trees of one group may need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Reference count tree and free-inode tree.
    metadata: u32,
    /// Reverse mapping tree.
    rmap: u32,
    /// Besides.
    slack: u32,
}

impl Reserved {
    /// The reservations of group `ag`.
    #[must_use]
    pub fn new(geometry: &Geometry, ag: AgNumber) -> Self {
        let length = geometry.ag_length(ag);
        let (log_group, _) = geometry.split_block(geometry.log_start);
        let has_log = !geometry.log_start.is_null() && log_group == ag;
        let blocks = length.saturating_sub(if has_log { geometry.log_blocks } else { 0 });
        let features = &geometry.features;
        let mut metadata = 0;
        if features.reflink() {
            metadata += worst_size(geometry, blocks.into(), 12, 8);
        }
        if features.finobt() {
            let chunks = (u64::from(blocks) << geometry.inodes_per_block_log()) / 64;
            metadata += worst_size(geometry, chunks, 16, 8);
        }
        let mut rmap = 0;
        if features.rmapbt() {
            rmap = worst_size(geometry, blocks.into(), 24, 44).max(u64::from(blocks / 100));
        }
        // Trees are smaller than the group they describe.
        let clamp = |size: u64| u32::try_from(size).unwrap_or(u32::MAX).min(length);
        Self { metadata: clamp(metadata), rmap: clamp(rmap), slack: 0 }
    }

    /// The same, and `slack` blocks that only trees and the free list may have.
    #[must_use]
    pub(crate) const fn with_slack(self, slack: u32) -> Self {
        Self { slack, ..self }
    }

    /// Blocks that all trees may need at most.
    #[must_use]
    pub fn total(&self) -> u32 {
        self.metadata.saturating_add(self.rmap)
    }

    /// Blocks that files and directories must leave alone.
    #[must_use]
    pub fn ordinary(&self, agf: &Agf, agi: &Agi) -> u32 {
        self.outstanding(agf, agi, Pool::Ordinary)
    }

    /// Blocks that a request for `pool` must leave alone.
    #[must_use]
    pub fn outstanding(&self, agf: &Agf, agi: &Agi, pool: Pool) -> u32 {
        let used = agf.refcount_blocks.saturating_add(agi.finobt_blocks);
        let metadata = self.metadata.saturating_sub(used);
        let rmap = self.rmap.saturating_sub(agf.rmap_blocks);
        match pool {
            Pool::Ordinary => metadata.saturating_add(rmap).saturating_add(self.slack),
            Pool::Metadata => rmap,
            Pool::FreeList => 0,
        }
    }
}

/// Blocks of a tree of `records` records with every block at its least fill.
fn worst_size(geometry: &Geometry, records: u64, record_len: u64, node_entry_len: u64) -> u64 {
    const SHORT_HEADER: u64 = 56;
    let usable = geometry.block_size() as u64 - SHORT_HEADER;
    let (leaf, node) = (usable / record_len / 2, usable / node_entry_len / 2);
    let mut level = records.div_ceil(leaf).max(1);
    let mut total = level;
    while level > 1 {
        level = level.div_ceil(node);
        total += level;
    }
    total
}

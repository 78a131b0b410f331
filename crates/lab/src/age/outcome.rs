//! What ageing left.

use serde::{Deserialize, Serialize};
use undercroft_xfs::Volume;
use undercroft_xfs::frag::FreeSpace;

use super::FreeMap;
use crate::error::LabError;
use crate::measure::histogram::{Line, lines};

/// The free space of an aged volume. Lengths are in blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgeOutcome {
    /// The options given.
    #[serde(flatten)]
    pub map: FreeMap,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Groups of the volume.
    pub groups: u32,
    /// Blocks of a group.
    pub group_blocks: u32,
    /// Pieces that are kept.
    pub kept: u64,
    /// Pieces that were not free any more when their turn came.
    pub refused: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Free extents.
    pub free_extents: u64,
    /// Length of the longest one.
    pub longest: u32,
    /// Free extents by length.
    pub free: Vec<Line>,
}

impl AgeOutcome {
    /// What was made.
    pub(crate) fn title(&self) -> String {
        format!("age: {} free space in {} groups", self.map.name(), self.groups)
    }

    pub(super) fn of(
        volume: &Volume,
        map: &FreeMap,
        kept: u64,
        refused: u64,
    ) -> Result<Self, LabError> {
        let free = FreeSpace::of(volume)?;
        let geometry = volume.geometry();
        Ok(Self {
            map: *map,
            block_bytes: geometry.block_size() as u64,
            groups: geometry.ag_count,
            group_blocks: geometry.ag_blocks,
            kept,
            refused,
            free_blocks: free.by_block.sum(),
            free_extents: free.by_block.count(),
            longest: free.longest,
            free: lines(free.by_block.buckets(u64::MAX)),
        })
    }
}

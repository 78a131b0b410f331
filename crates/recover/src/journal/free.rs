//! Free space, as the journal has it: extents in records of the trees by block that were logged.

use std::ops::Range;

use rustc_hash::FxHashMap;
use undercroft_xfs_format::{AllocRecord, BufferItem, HeaderLayout, TreeKind};

use crate::disk::Disk;

/// Leaves of the trees of free space by block.
#[derive(Default)]
pub(super) struct FreeTrees {
    /// By sector, whether a block of a tree is such a leaf.
    leaves: FxHashMap<u64, bool>,
}

impl FreeTrees {
    /// Takes the item of a tree's block; returns the blocks of the free extents of it that were logged
    /// now. Whatever was taken from an extent, or given back to it, logs its record.
    pub(super) fn add(
        &mut self,
        disk: &Disk,
        (item, data): (&BufferItem, &[&[u8]]),
    ) -> Vec<Range<u64>> {
        let geometry = &disk.geometry;
        let layout = HeaderLayout::new(TreeKind::Bnobt, geometry.features.crc);
        let is_leaf = |header: &[u8]| {
            let is_tree = Some(HeaderLayout::magic(header)) == layout.magic_of(TreeKind::Bnobt);
            is_tree && HeaderLayout::level(header) == 0
        };
        let start = item.runs().zip(data).find(|(run, _)| run.start == 0);
        let header = start.map(|(_, bytes)| *bytes).filter(|b| b.len() >= layout.header_len());
        if let Some(header) = header {
            self.leaves.insert(item.sector.0, is_leaf(header));
        }
        let Some(place) = disk.block_at(item.sector.0) else { return Vec::new() };
        // A header that was not logged so far is the one that is in its place.
        let is_free = self
            .leaves
            .entry(item.sector.0)
            .or_insert_with(|| disk.blocks(place, 1).is_ok_and(|block| is_leaf(&block)));
        if !*is_free {
            return Vec::new();
        }
        let (group, _) = geometry.split_block(place);
        let mut free = Vec::new();
        for (run, bytes) in item.runs().zip(data) {
            let behind = layout.header_len().saturating_sub(run.start).min(bytes.len());
            // Runs and headers end where a record does.
            for record in bytes[behind..].chunks_exact(AllocRecord::LEN).map(AllocRecord::decode) {
                let (start, len) = (geometry.fs_block(group, record.start), record.len.into());
                if len > 0 && geometry.valid_extent(start, len) {
                    free.push(start.0..start.0 + len);
                }
            }
        }
        free
    }
}

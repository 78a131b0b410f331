//! Which blocks are free now, or kept for trees that will grow.

use std::ops::Range;

use undercroft_xfs_format::units::{AgNumber, FsBlock};

use crate::disk::Disk;
use crate::error::RecoverError;
use crate::trees;

/// The blocks of all groups that belong to nothing.
#[derive(Debug, Default)]
pub(crate) struct FreeSpace {
    /// Ranges of [`FsBlock`]s in ascending order.
    extents: Vec<Range<u64>>,
    /// Those of them that are kept for trees.
    pub(crate) kept: Vec<u64>,
}

impl FreeSpace {
    pub(crate) fn read(disk: &Disk) -> Result<Self, RecoverError> {
        let geometry = &disk.geometry;
        let (mut extents, mut all_kept) = (Vec::new(), Vec::new());
        for ag in (0..geometry.ag_count).map(AgNumber) {
            let space = trees::group_space(disk, ag)?;
            // Without checksums nothing tells a tree's block from data.
            let kept = space.kept.into_iter().filter(|_| geometry.features.crc);
            let kept: Vec<_> = kept.map(|block| (block, 1)).collect();
            all_kept.extend(kept.iter().map(|(block, _)| geometry.fs_block(ag, *block).0));
            let free = space.free.iter().map(|extent| (extent.start, u64::from(extent.len)));
            for (start, len) in kept.into_iter().chain(free) {
                let start = geometry.fs_block(ag, start);
                if geometry.valid_extent(start, len) {
                    extents.push(start.0..start.0 + len);
                }
            }
        }
        extents.sort_unstable_by_key(|range| range.start);
        Ok(Self { extents, kept: all_kept })
    }

    /// The parts of a range of blocks that are in use.
    pub(crate) fn used_in(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut used = Vec::new();
        let mut at = range.start;
        let first = self.extents.partition_point(|free| free.end <= range.start);
        for free in self.extents[first..].iter().take_while(|free| free.start < range.end) {
            if free.start > at {
                used.push(at..free.start);
            }
            at = at.max(free.end);
        }
        if at < range.end {
            used.push(at..range.end);
        }
        used
    }

    /// The sectors of all of it.
    pub(crate) fn sectors(&self, disk: &Disk) -> Vec<Range<u64>> {
        let log = disk.geometry.block_log - 9;
        let sectors = self.extents.iter().map(|free| {
            let start = disk.geometry.sector(FsBlock(free.start)).0;
            start..start + ((free.end - free.start) << log)
        });
        sectors.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(range: Range<u64>) -> Vec<Range<u64>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn ranges_are_cut_by_what_is_free() {
        let space = FreeSpace { extents: vec![10..20, 30..40], kept: Vec::new() };
        assert_eq!(space.used_in(12..20), []);
        assert_eq!(space.used_in(5..35), [5..10, 20..30]);
        assert_eq!(space.used_in(19..21), one(20..21));
        assert_eq!(space.used_in(40..41), one(40..41));
    }
}

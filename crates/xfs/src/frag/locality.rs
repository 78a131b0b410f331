//! How far extents lie from where they should be.
//!
//! Definition: docs/algorithms/locality.md#distances. The place an extent should be at is the end
//! of the extent before it in the file, shifted by the gap in the file if that stays in the group;
//! for the first extent, the block with the inode. An extent in another group counts as far as a
//! group is long.

use super::histogram::{Bucket, Histogram};
use crate::format::Extent;
use crate::geometry::Geometry;
use crate::units::FsBlock;

/// From the hint of an extent to where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Inside a group, in blocks.
    Inside(u32),
    /// To another group, of the first extent of a file.
    FirstElsewhere,
    /// To another group, of a later one.
    LaterElsewhere,
}

impl Step {
    /// Of an extent; `before` is the one before it in the file, `inode` the block of the inode.
    pub(super) fn between(
        geometry: &Geometry,
        inode: FsBlock,
        before: Option<Extent>,
        extent: Extent,
    ) -> Self {
        let hint = before.map_or(inode, |before| behind(geometry, before, extent));
        let ((hint_ag, hint), (ag, start)) =
            (geometry.split_block(hint), geometry.split_block(extent.start));
        match before {
            _ if hint_ag == ag => Self::Inside(hint.0.abs_diff(start.0)),
            None => Self::FirstElsewhere,
            Some(_) => Self::LaterElsewhere,
        }
    }

    /// Whether it is longer than `limit` blocks.
    pub(super) fn is_beyond(self, limit: u32) -> bool {
        !matches!(self, Self::Inside(distance) if distance <= limit)
    }
}

/// Distances of extents from their hints, in blocks.
#[derive(Clone, Debug)]
pub struct Locality {
    group_blocks: u32,
    histogram: Histogram,
    /// All distances inside groups.
    distances: Vec<u32>,
    /// First extents of files that lie in another group than the inode.
    pub first_switches: u64,
    /// Later extents that lie in another group than the one before.
    pub later_switches: u64,
}

impl Locality {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            group_blocks: geometry.ag_blocks,
            histogram: Histogram::default(),
            distances: Vec::new(),
            first_switches: 0,
            later_switches: 0,
        }
    }

    /// Counts an extent.
    pub(super) fn add(&mut self, step: Step) {
        match step {
            Step::Inside(distance) => {
                self.histogram.add(distance.into());
                self.distances.push(distance);
            }
            Step::FirstElsewhere => self.first_switches += 1,
            Step::LaterElsewhere => self.later_switches += 1,
        }
    }

    /// Blocks of a group.
    #[must_use]
    pub fn group_blocks(&self) -> u32 {
        self.group_blocks
    }

    /// Extents in another group than their hint.
    #[must_use]
    pub fn switches(&self) -> u64 {
        self.first_switches + self.later_switches
    }

    /// Number of extents.
    #[must_use]
    pub fn extents(&self) -> u64 {
        self.histogram.count() + self.switches()
    }

    /// Extents by distance; the last bucket holds those in another group.
    #[must_use]
    pub fn buckets(&self) -> Vec<Bucket> {
        let size = u64::from(self.group_blocks);
        let mut buckets: Vec<Bucket> = self.histogram.buckets(size.saturating_sub(1)).collect();
        let count = self.switches();
        buckets.push(Bucket { from: size, to: size, count, sum: count * size });
        buckets
    }

    /// Extents by distance as a part of the group size: entry `k` counts those between 2^-(k+1),
    /// excluded, and 2^-k of it; the last one all that are nearer.
    #[must_use]
    pub fn normalised(&self) -> Vec<u64> {
        let log = u32::BITS - self.group_blocks.leading_zeros();
        let mut counts = vec![0; log as usize + 1];
        for distance in &self.distances {
            let last = counts.len() - 1;
            let ratio = u64::from(self.group_blocks).checked_div(u64::from(*distance));
            let slot = ratio.map_or(last, |ratio| ratio.ilog2() as usize);
            counts[slot.min(last)] += 1;
        }
        counts
    }

    /// Extents at most `limit` blocks from their hint.
    #[must_use]
    pub fn within(&self, limit: u32) -> u64 {
        self.distances.iter().filter(|distance| **distance <= limit).count() as u64
    }

    /// Mean distance of the extents in the group of their hint.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.histogram.count();
        (count > 0).then(|| self.histogram.sum() as f64 / count as f64)
    }

    /// Median distance of the extents in the group of their hint.
    #[must_use]
    pub fn median(&self) -> Option<u32> {
        let mut distances = self.distances.clone();
        let middle = distances.len() / 2;
        (!distances.is_empty()).then(|| *distances.select_nth_unstable(middle).1)
    }
}

/// The block behind an extent, shifted by the gap in the file up to `next` where it can be.
fn behind(geometry: &Geometry, before: Extent, next: Extent) -> FsBlock {
    let (ag, start) = geometry.split_block(before.start);
    let end = u64::from(start.0) + u64::from(before.len);
    let gap = next.offset.0.saturating_sub(before.end().0);
    let length = u64::from(geometry.ag_length(ag));
    let shifted = end.checked_add(gap).filter(|shifted| *shifted < length);
    // The end of the last extent of a group is no block of the volume, but a fine hint.
    let block = shifted.unwrap_or(end.min(length.saturating_sub(1)));
    FsBlock(before.start.0 - u64::from(start.0) + block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkfs::{MkfsOptions, plan};
    use crate::units::{AgBlock, AgNumber, FileBlock};
    use uuid::Uuid;

    #[test]
    fn distances_follow_the_file() {
        let geometry = plan(&MkfsOptions::new(1 << 30, Uuid::from_u128(1))).unwrap().geometry();
        let at = |ag, block| geometry.fs_block(AgNumber(ag), AgBlock(block));
        let extent =
            |offset, start, len| Extent { offset: FileBlock(offset), start, len, unwritten: false };
        let mut locality = Locality::new(&geometry);
        let inode = at(1, 100);
        let first = extent(0, at(1, 130), 10);
        // Behind a hole of five blocks, as if it were filled.
        let second = extent(15, at(1, 145), 1);
        let third = extent(16, at(1, 140), 1);
        let far = extent(17, at(2, 140), 1);
        let pairs =
            [(None, first), (Some(first), second), (Some(second), third), (Some(third), far)];
        let steps = pairs.map(|(before, next)| Step::between(&geometry, inode, before, next));
        let inside = Step::Inside;
        assert_eq!(steps, [inside(30), inside(0), inside(6), Step::LaterElsewhere]);
        assert!(steps[2].is_beyond(5) && !steps[2].is_beyond(6) && steps[3].is_beyond(u32::MAX));
        steps.into_iter().for_each(|step| locality.add(step));
        assert_eq!((locality.first_switches, locality.later_switches), (0, 1));
        assert_eq!((locality.extents(), locality.median()), (4, Some(6)));
        assert_eq!((locality.within(6), locality.mean()), (2, Some(12.0)));
        let buckets = locality.buckets();
        assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 4);
        assert_eq!(buckets.last().map(|bucket| bucket.count), Some(1));
        assert_eq!(locality.normalised().iter().sum::<u64>(), 3);
    }
}

//! An index of the free extents of one group, in memory: the nearest extent of at least a given
//! length on either side of a block, in bounded time.
//!
//! The group is cut into regions of a fixed number of blocks. Each region has the extents that
//! start in it, by position; over the regions stands a tree of the longest extents. A query looks
//! through the hint's region, climbs to the next region that has an extent long enough, and looks
//! through that one: two regions and two ways through the tree, for any free space.
//!
//! Cost: 8 bytes per free extent, at most doubled by the growth of lists, and 32 bytes per region.
//! Regions have 1024 blocks, so at most 512 extents; in groups above 2^26 blocks they are larger, so that
//! there are at most 2^16 of them (2 MiB). The index is a copy of the by-block tree and is checked
//! against the header when it is built.

use crate::format::AllocRecord;
use crate::units::AgBlock;

/// Log2 of the least number of blocks of a region.
const REGION_LOG: u32 = 10;

/// Log2 of the greatest number of regions.
const REGIONS_LOG: u32 = 16;

/// The free extents of one group.
#[derive(Debug)]
pub(super) struct FreeIndex {
    /// Log2 of the blocks of a region.
    region_log: u32,
    /// Extents by the region they start in, ascending.
    regions: Vec<Vec<AllocRecord>>,
    /// A binary tree in an array: entry 1 is the root, the children of `i` are `2i` and `2i + 1`,
    /// the leaves are the regions. Each entry is the length of the longest extent below it.
    longest: Vec<u32>,
}

impl FreeIndex {
    /// An index of a group of `blocks` blocks with these free extents, which are in order and in the
    /// group.
    pub(super) fn of(blocks: u32, extents: &[AllocRecord]) -> Self {
        let mut index = Self::new(blocks);
        for record in extents {
            let region = index.region_of(record);
            index.regions[region].push(*record);
        }
        index.sum_up();
        index
    }

    /// An index of a group of `blocks` blocks without free extents.
    fn new(blocks: u32) -> Self {
        let log = 32 - blocks.saturating_sub(1).leading_zeros();
        let region_log = REGION_LOG.max(log.saturating_sub(REGIONS_LOG));
        let regions = (blocks.div_ceil(1 << region_log) as usize).next_power_of_two();
        Self { region_log, regions: vec![Vec::new(); regions], longest: vec![0; 2 * regions] }
    }

    /// Length of the longest free extent.
    pub(super) fn max(&self) -> u32 {
        self.longest[1]
    }

    /// Whether `len` blocks from `at` on are free.
    pub(super) fn is_free(&self, at: AgBlock, len: u32) -> bool {
        // An extent that is shorter does not reach that far.
        let around = self.last_before(AgBlock(at.0.saturating_add(1)), len);
        around.is_some_and(|extent| {
            u64::from(extent.start.0) + u64::from(extent.len) >= u64::from(at.0) + u64::from(len)
        })
    }

    /// The last extent of at least `len` blocks that starts before `bound`.
    pub(super) fn last_before(&self, bound: AgBlock, len: u32) -> Option<AllocRecord> {
        let region = ((bound.0 >> self.region_log) as usize).min(self.regions.len() - 1);
        let last = |extents: &[AllocRecord]| {
            extents.iter().rev().find(|extent| extent.len >= len).copied()
        };
        let found = self.with_enough(region, len).and_then(|extents| {
            last(&extents[..extents.partition_point(|extent| extent.start < bound)])
        });
        found.or_else(|| last(&self.regions[self.region_left_of(region, len)?]))
    }

    /// The first extent of at least `len` blocks that starts at or after `bound`.
    pub(super) fn first_from(&self, bound: AgBlock, len: u32) -> Option<AllocRecord> {
        let region = (bound.0 >> self.region_log) as usize;
        let first =
            |extents: &[AllocRecord]| extents.iter().find(|extent| extent.len >= len).copied();
        if region >= self.regions.len() {
            return None;
        }
        let found = self.with_enough(region, len).and_then(|extents| {
            first(&extents[extents.partition_point(|extent| extent.start < bound)..])
        });
        found.or_else(|| first(&self.regions[self.region_right_of(region, len)?]))
    }

    /// The extents of a region, if one of them has `len` blocks.
    fn with_enough(&self, region: usize, len: u32) -> Option<&[AllocRecord]> {
        let enough = self.longest[self.regions.len() + region] >= len;
        enough.then_some(&self.regions[region])
    }

    /// The nearest region to the left that has an extent of at least `len` blocks.
    fn region_left_of(&self, region: usize, len: u32) -> Option<usize> {
        let mut node = region + self.regions.len();
        loop {
            // A right child has its sibling on the left.
            while node & 1 == 0 {
                node >>= 1;
            }
            if node <= 1 {
                return None;
            }
            if self.longest[node - 1] >= len {
                return Some(self.descend(node - 1, len, 1));
            }
            node >>= 1;
            if node <= 1 {
                return None;
            }
        }
    }

    /// The nearest region to the right that has an extent of at least `len` blocks.
    fn region_right_of(&self, region: usize, len: u32) -> Option<usize> {
        let mut node = region + self.regions.len();
        while node > 1 {
            if node & 1 == 0 && self.longest[node + 1] >= len {
                return Some(self.descend(node + 1, len, 0));
            }
            node >>= 1;
        }
        None
    }

    /// The outermost region below `node` that has an extent of at least `len` blocks: the first
    /// (`side` 0) or the last (1). There is one.
    fn descend(&self, mut node: usize, len: u32, side: usize) -> usize {
        while node < self.regions.len() {
            let child = 2 * node + side;
            node = if self.longest[child] >= len { child } else { child ^ 1 };
        }
        node - self.regions.len()
    }

    /// Follows a change of the trees: `old` extents are replaced by `new` ones, which lie where the
    /// old ones did or beside them.
    pub(super) fn replace(
        &mut self,
        mut old: &[AllocRecord],
        mut new: impl Iterator<Item = AllocRecord>,
    ) {
        let mut next = new.next();
        if let (Some((first, rest)), Some(record)) = (old.split_first(), next)
            && self.region_of(first) == self.region_of(&record)
        {
            self.exchange(*first, record);
            (old, next) = (rest, new.next());
        }
        for record in old {
            self.remove(*record);
        }
        for record in next.into_iter().chain(new) {
            self.insert(record);
        }
    }

    /// The region that the extent starts in.
    const fn region_of(&self, record: &AllocRecord) -> usize {
        (record.start.0 >> self.region_log) as usize
    }

    /// Puts `new` in the place of `old`, which starts in the same region with no other between them.
    fn exchange(&mut self, old: AllocRecord, new: AllocRecord) {
        let region = self.region_of(&old);
        let extents = &mut self.regions[region];
        let at = extents.partition_point(|extent| extent.start < old.start);
        debug_assert_eq!(extents.get(at), Some(&old));
        extents[at] = new;
        let leaf = region + self.regions.len();
        if new.len >= self.longest[leaf] {
            self.set_longest(leaf, new.len);
        } else if old.len == self.longest[leaf] {
            self.recount(region);
        }
    }

    /// Looks for the longest extent of a region again.
    fn recount(&mut self, region: usize) {
        let longest = self.regions[region].iter().map(|extent| extent.len).max();
        self.set_longest(region + self.regions.len(), longest.unwrap_or(0));
    }

    fn insert(&mut self, record: AllocRecord) {
        let region = self.region_of(&record);
        let extents = &mut self.regions[region];
        let at = extents.partition_point(|extent| extent.start < record.start);
        extents.insert(at, record);
        let leaf = region + self.regions.len();
        if record.len > self.longest[leaf] {
            self.set_longest(leaf, record.len);
        }
    }

    fn remove(&mut self, record: AllocRecord) {
        let region = self.region_of(&record);
        let extents = &mut self.regions[region];
        let at = extents.partition_point(|extent| extent.start < record.start);
        debug_assert_eq!(extents.get(at), Some(&record));
        extents.remove(at);
        if record.len == self.longest[region + self.regions.len()] {
            self.recount(region);
        }
    }

    fn set_longest(&mut self, mut node: usize, len: u32) {
        self.longest[node] = len;
        while node > 1 {
            node >>= 1;
            let longest = self.longest[2 * node].max(self.longest[2 * node + 1]);
            if self.longest[node] == longest {
                return;
            }
            self.longest[node] = longest;
        }
    }

    /// Fills the tree over the regions.
    fn sum_up(&mut self) {
        let regions = self.regions.len();
        for (region, extents) in self.regions.iter().enumerate() {
            let longest = extents.iter().map(|extent| extent.len).max();
            self.longest[regions + region] = longest.unwrap_or(0);
        }
        for node in (1..regions).rev() {
            self.longest[node] = self.longest[2 * node].max(self.longest[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn answers_are_those_of_a_list(
            steps in prop::collection::vec((0_u32..600, 0_usize..3, 0_u32..4, 1_u32..5), 1..200),
            queries in prop::collection::vec((0_u32..10_000, 1_u32..18), 1..50),
        ) {
            let mut index = FreeIndex::new(9_700);
            let mut list = BTreeMap::new();
            for (slot, count, shift, len) in steps {
                // A slot of 16 blocks, some of them in two regions, has none, one or two extents.
                let slot = AgBlock(slot * 16 + 8)..AgBlock(slot * 16 + 24);
                let old: Vec<_> = list
                    .range(slot.clone())
                    .map(|(start, len)| AllocRecord { start: *start, len: *len })
                    .collect();
                list.retain(|start, _| !slot.contains(start));
                let new = [0, 8].map(|half| AgBlock(slot.start.0 + half + shift));
                let new = new.map(|start| AllocRecord { start, len });
                list.extend(new[..count].iter().map(|record| (record.start, record.len)));
                index.replace(&old, new.into_iter().take(count));
            }
            prop_assert_eq!(index.max(), list.values().copied().max().unwrap_or(0));
            for (bound, len) in queries {
                let bound = AgBlock(bound);
                let fits = |(start, found): (&AgBlock, &u32)| {
                    (*found >= len).then_some(AllocRecord { start: *start, len: *found })
                };
                let before = list.range(..bound).rev().find_map(fits);
                prop_assert_eq!(index.last_before(bound, len), before);
                let from = list.range(bound..).find_map(fits);
                prop_assert_eq!(index.first_from(bound, len), from);
                let free = list.range(..=bound).next_back().is_some_and(|(start, found)| {
                    start.0 + *found >= bound.0 + len
                });
                prop_assert_eq!(index.is_free(bound, len), free);
            }
        }
    }

    #[test]
    fn a_small_group_has_one_region() {
        let mut index = FreeIndex::new(700);
        assert_eq!(index.last_before(AgBlock(699), 1), None);
        assert_eq!(index.first_from(AgBlock(0), 1), None);
        let extent = AllocRecord { start: AgBlock(5), len: 9 };
        index.replace(&[], std::iter::once(extent));
        assert_eq!(index.last_before(AgBlock(6), 9), Some(extent));
        assert_eq!(index.last_before(AgBlock(5), 9), None);
        assert_eq!(index.first_from(AgBlock(5), 9), Some(extent));
        assert_eq!(index.first_from(AgBlock(5), 10), None);
        assert_eq!(index.first_from(AgBlock(5000), 1), None);
    }
}

//! Ranges of an export that read as zeroes: they need not be read, and zeroes not be written there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::protocol::{AllocationFlags, StatusExtent};

/// Most ranges that are remembered.
const MAX_RANGES: usize = 1 << 16;
/// Shorter ranges are not worth it.
const SHORTEST: u64 = 64 << 10;

/// Ranges that read as zeroes, until something is written there.
#[derive(Debug, Default)]
pub(crate) struct Zeroes {
    /// Ends by starts; no two touch.
    ranges: RwLock<BTreeMap<u64, u64>>,
    /// Spares a look at none.
    any: AtomicBool,
}

impl Zeroes {
    /// Those among `extents`, which lie one behind the other from `offset` on.
    pub(crate) fn learn(&self, mut offset: u64, extents: &[StatusExtent]) {
        let mut ranges = self.ranges.write();
        for extent in extents {
            let end = offset.saturating_add(extent.length);
            let zero =
                AllocationFlags::from_bits_retain(extent.flags).contains(AllocationFlags::ZERO);
            if zero {
                // The one before may end here: an answer begins where another ended.
                if let Some(mut last) = ranges.last_entry()
                    && *last.get() == offset
                {
                    *last.get_mut() = end;
                } else if ranges.len() < MAX_RANGES {
                    ranges.insert(offset, end);
                }
            }
            offset = end;
        }
    }

    /// All is learnt.
    pub(crate) fn settle(&self) {
        let mut ranges = self.ranges.write();
        ranges.retain(|start, end| *end - *start >= SHORTEST);
        self.any.store(!ranges.is_empty(), Ordering::Release);
    }

    /// Whether all of the range reads as zeroes.
    pub(crate) fn cover(&self, offset: u64, length: u64) -> bool {
        if length == 0 || !self.any.load(Ordering::Acquire) {
            return false;
        }
        let ranges = self.ranges.read();
        let before = ranges.range(..=offset).next_back();
        before.is_some_and(|(_, end)| offset.saturating_add(length) <= *end)
    }

    /// Something is going to be written there.
    pub(crate) fn forget(&self, offset: u64, length: u64) {
        if !self.any.load(Ordering::Acquire) || !self.touch(offset, length) {
            return;
        }
        let end = offset.saturating_add(length);
        let mut ranges = self.ranges.write();
        while let Some((&start, &stop)) = ranges.range(..end).next_back()
            && stop > offset
        {
            ranges.remove(&start);
            if stop > end {
                ranges.insert(end, stop);
            }
            if start < offset {
                ranges.insert(start, offset);
            }
        }
    }

    fn touch(&self, offset: u64, length: u64) -> bool {
        let end = offset.saturating_add(length);
        let ranges = self.ranges.read();
        ranges.range(..end).next_back().is_some_and(|(_, stop)| *stop > offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ZERO: u64 = AllocationFlags::ZERO.bits() | AllocationFlags::HOLE.bits();
    const UNIT: u64 = SHORTEST;

    fn map(extents: &[(u64, u64)]) -> Zeroes {
        let zeroes = Zeroes::default();
        let extents: Vec<_> = extents
            .iter()
            .map(|&(units, flags)| StatusExtent { length: units * UNIT, flags })
            .collect();
        let (one, two) = extents.split_at(extents.len() / 2);
        zeroes.learn(0, one);
        zeroes.learn(one.iter().map(|extent| extent.length).sum(), two);
        zeroes.settle();
        zeroes
    }

    #[test]
    fn neighbours_of_two_answers_are_one_range() {
        let zeroes = map(&[(1, 0), (2, ZERO), (3, ZERO), (1, AllocationFlags::HOLE.bits())]);
        assert!(zeroes.cover(UNIT, 5 * UNIT));
        assert!(!zeroes.cover(UNIT - 1, 2) && !zeroes.cover(UNIT, 5 * UNIT + 1));
        assert!(!zeroes.cover(6 * UNIT, 1), "a hole may read as anything");
        assert!(!zeroes.cover(2 * UNIT, 0));
    }

    proptest! {
        #[test]
        fn what_is_written_is_no_zero_any_more(
            flags in prop::collection::vec(any::<bool>(), 1..12),
            writes in prop::collection::vec((0..12_u64, 1..6_u64), 0..12),
        ) {
            let extents: Vec<_> = flags.iter().map(|zero| (1, if *zero { ZERO } else { 0 })).collect();
            let zeroes = map(&extents);
            let mut model = flags.clone();
            for (place, length) in writes {
                zeroes.forget(place * UNIT, length * UNIT);
                for unit in model.iter_mut().skip(place as usize).take(length as usize) {
                    *unit = false;
                }
                for start in 0..model.len() {
                    for end in start + 1..=model.len() {
                        let covered = model[start..end].iter().all(|zero| *zero);
                        let (offset, length) = (start as u64 * UNIT, (end - start) as u64 * UNIT);
                        prop_assert_eq!(zeroes.cover(offset, length), covered);
                    }
                }
            }
        }
    }
}

//! The blocks of a group without a claim.

use undercroft_xfs::format::{AllocRecord, RmapRecord};
use undercroft_xfs::units::AgBlock;

/// Free extents of a group, ascending.
#[derive(Clone, Debug, Default)]
pub(crate) struct Free {
    extents: Vec<(u32, u32)>,
}

impl Free {
    /// What is left of a group of so many blocks.
    pub(crate) fn of(length: u32, claims: &[RmapRecord]) -> Self {
        let mut used: Vec<(u32, u32)> =
            claims.iter().map(|record| (record.start.0, record.start.0 + record.len)).collect();
        used.sort_unstable();
        let (mut extents, mut at) = (Vec::new(), 0);
        for (start, end) in used {
            if start > at {
                extents.push((at, start - at));
            }
            at = at.max(end);
        }
        if at < length {
            extents.push((at, length - at));
        }
        Self { extents }
    }

    /// These extents, which ascend.
    pub(crate) fn of_records(records: &[AllocRecord]) -> Self {
        Self { extents: records.iter().map(|record| (record.start.0, record.len)).collect() }
    }

    /// What is left when blocks, each of which is free, are taken.
    pub(crate) fn without(&self, taken: &[AgBlock]) -> Self {
        let mut taken: Vec<u32> = taken.iter().map(|block| block.0).collect();
        taken.sort_unstable();
        let (mut extents, mut at) = (Vec::with_capacity(self.extents.len()), 0);
        for (start, len) in &self.extents {
            let (mut from, end) = (*start, start + len);
            while let Some(block) = taken.get(at).filter(|block| **block < end) {
                if *block > from {
                    extents.push((from, block - from));
                }
                (from, at) = (block + 1, at + 1);
            }
            if from < end {
                extents.push((from, end - from));
            }
        }
        Self { extents }
    }

    /// What is free here and there.
    pub(crate) fn common(&self, other: &Self) -> Self {
        let (mut extents, mut at) = (Vec::new(), 0);
        for (start, len) in &self.extents {
            let end = start + len;
            while let Some((from, count)) = other.extents.get(at) {
                let (first, last) = ((*from).max(*start), (from + count).min(end));
                if first < last {
                    extents.push((first, last - first));
                }
                if from + count > end {
                    break;
                }
                at += 1;
            }
        }
        Self { extents }
    }

    /// Whether all of some blocks are free.
    pub(crate) fn has(&self, block: u32, count: u32) -> bool {
        let at = self.extents.partition_point(|(start, _)| *start <= block);
        let last = at.checked_sub(1).map(|last| self.extents[last]);
        last.is_some_and(|(start, len)| block + count <= start + len)
    }

    pub(crate) fn len(&self) -> usize {
        self.extents.len()
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.extents.iter().map(|(_, len)| u64::from(*len)).sum()
    }

    /// Takes blocks: of the first extent that has all of them, else of several. `None` if there are not so
    /// many.
    pub(crate) fn take(&mut self, count: u32) -> Option<Vec<AgBlock>> {
        if self.blocks() < count.into() {
            return None;
        }
        let mut taken = Vec::with_capacity(count as usize);
        let whole = self.extents.iter().position(|(_, len)| *len >= count);
        let mut place = whole.unwrap_or(0);
        while taken.len() < count as usize {
            let (start, len) = &mut self.extents[place];
            let part = (count - taken.len() as u32).min(*len);
            taken.extend((*start..*start + part).map(AgBlock));
            (*start, *len) = (*start + part, *len - part);
            place += usize::from(*len == 0);
        }
        self.extents.retain(|(_, len)| *len > 0);
        Some(taken)
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = AllocRecord> + '_ {
        self.extents.iter().map(|(start, len)| AllocRecord { start: AgBlock(*start), len: *len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_together_if_that_can_be() {
        let mut free = Free { extents: vec![(5, 2), (10, 4), (20, 3)] };
        assert_eq!(free.take(3).unwrap(), [10, 11, 12].map(AgBlock));
        assert_eq!(free.take(5).unwrap(), [5, 6, 13, 20, 21].map(AgBlock));
        assert!(free.take(2).is_none());
        assert_eq!((free.len(), free.blocks()), (1, 1));
    }

    #[test]
    fn what_is_left_are_the_pieces_between() {
        let free = Free { extents: vec![(5, 2), (10, 4), (20, 3)] };
        let left = free.without(&[20, 11, 5, 6, 22].map(AgBlock));
        assert_eq!(left.extents, [(10, 1), (12, 2), (21, 1)]);
        let other = Free { extents: vec![(0, 6), (12, 9), (22, 5)] };
        assert_eq!(free.common(&other).extents, [(5, 1), (12, 2), (20, 1), (22, 1)]);
        assert_eq!(other.common(&free).extents, [(5, 1), (12, 2), (20, 1), (22, 1)]);
        assert!(left.has(12, 2) && !left.has(12, 3) && !left.has(11, 1) && !left.has(0, 1));
    }
}

//! The mapping of one fork in memory: extents in the order of file blocks.

use crate::format::Extent;
use crate::units::FileBlock;

/// Longest mapping that one record can hold, in blocks.
pub const MAX_EXTENT_LEN: u32 = (1 << 21) - 1;

/// Extents of a fork: ascending, not overlapping, neighbours merged where the format allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtentList {
    extents: Vec<Extent>,
}

/// The change of records when an extent is added: a tree on disk must change in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// A record of its own.
    Inserted(Extent),
    /// A neighbour grew: before, after.
    Grown(Extent, Extent),
    /// Two neighbours became one: left and right before, after.
    Joined(Extent, Extent, Extent),
}

impl ExtentList {
    /// An empty list.
    pub const EMPTY: Self = Self { extents: Vec::new() };

    /// The list of what has no blocks.
    pub(crate) fn none() -> &'static Self {
        static NONE: ExtentList = ExtentList::EMPTY;
        &NONE
    }

    /// Takes over extents as decoded from a fork; the decoder has checked them.
    #[must_use]
    pub fn from_sorted(extents: Vec<Extent>) -> Self {
        debug_assert!(extents.windows(2).all(|pair| pair[0].end() <= pair[1].offset));
        Self { extents }
    }

    /// Number of extents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.extents.len()
    }

    /// Whether nothing is mapped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// All extents, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[Extent] {
        &self.extents
    }

    /// One past the last mapped block.
    #[must_use]
    pub fn end(&self) -> FileBlock {
        self.extents.last().map_or(FileBlock(0), Extent::end)
    }

    /// Index of the first extent that ends after `block`.
    #[must_use]
    pub fn position(&self, block: FileBlock) -> usize {
        // Appending is what happens most.
        match self.extents.last() {
            Some(last) if last.end() <= block => self.extents.len(),
            _ => self.extents.partition_point(|extent| extent.end() <= block),
        }
    }

    /// The extent that contains `block`, or the first one behind it.
    #[must_use]
    pub fn at_or_after(&self, block: FileBlock) -> Option<Extent> {
        self.extents.get(self.position(block)).copied()
    }

    /// The extent before the one at or after `block`.
    #[must_use]
    pub fn before(&self, block: FileBlock) -> Option<Extent> {
        self.position(block).checked_sub(1).map(|index| self.extents[index])
    }

    /// First unmapped range of `len` blocks that starts at or after `from`, at a multiple of
    /// `align` from it.
    #[must_use]
    pub fn gap(&self, from: FileBlock, len: u64, align: u64) -> FileBlock {
        let mut start = from.0;
        for extent in &self.extents[self.position(from)..] {
            if start + len <= extent.offset.0 {
                break;
            }
            start = from.0 + (extent.end().0 - from.0).next_multiple_of(align);
        }
        FileBlock(start)
    }

    /// Adds a mapping for unmapped blocks, merged with its neighbours where that is allowed.
    pub fn add(&mut self, new: Extent) -> Added {
        let at = self.position(new.offset);
        debug_assert!(self.extents.get(at).is_none_or(|next| new.end() <= next.offset));
        let left =
            at.checked_sub(1).map(|index| self.extents[index]).filter(|l| continues(l, &new));
        let right = self.extents.get(at).copied().filter(|r| continues(&new, r));
        let fits = |len: u64| len <= u64::from(MAX_EXTENT_LEN);
        let sum = |parts: &[Extent]| parts.iter().map(|part| u64::from(part.len)).sum::<u64>();
        match (left, right) {
            (Some(left), Some(right)) if fits(sum(&[left, new, right])) => {
                let joined = Extent { len: left.len + new.len + right.len, ..left };
                self.extents[at - 1] = joined;
                self.extents.remove(at);
                Added::Joined(left, right, joined)
            }
            (Some(left), _) if fits(sum(&[left, new])) => {
                let grown = Extent { len: left.len + new.len, ..left };
                self.extents[at - 1] = grown;
                Added::Grown(left, grown)
            }
            (_, Some(right)) if fits(sum(&[new, right])) => {
                let grown = Extent { len: new.len + right.len, ..new };
                self.extents[at] = grown;
                Added::Grown(right, grown)
            }
            _ => {
                self.extents.insert(at, new);
                Added::Inserted(new)
            }
        }
    }

    /// Puts `new` in the place of the whole record `old`, if it lies between the same neighbours and
    /// merges with neither; whether that was so.
    pub fn relocate(&mut self, old: &Extent, new: Extent) -> bool {
        let at = self.position(old.offset);
        if self.extents.get(at) != Some(old) {
            return false;
        }
        let left = at.checked_sub(1).map(|index| &self.extents[index]);
        let right = self.extents.get(at + 1);
        let fits = left.is_none_or(|left| left.end() <= new.offset && !continues(left, &new))
            && right.is_none_or(|right| new.end() <= right.offset && !continues(&new, right));
        if fits {
            self.extents[at] = new;
        }
        fits
    }

    /// The last extent that overlaps `[from, to)`, and the part of it inside.
    #[must_use]
    pub fn last_in(&self, from: FileBlock, to: FileBlock) -> Option<(Extent, Extent)> {
        let at = self.extents.partition_point(|extent| extent.offset < to).checked_sub(1)?;
        let record = self.extents[at];
        Some((record, record.part(from, to)?))
    }

    /// The first extent that overlaps `[from, to)`, cut to the part inside.
    #[must_use]
    pub fn first_in(&self, from: FileBlock, to: FileBlock) -> Option<Extent> {
        self.at_or_after(from)?.part(from, to)
    }

    /// Removes the last extent that overlaps `[from, to)`, or the part of it inside; returns the
    /// record before, its rest in front and behind, and the removed part.
    pub fn remove_last(&mut self, from: FileBlock, to: FileBlock) -> Option<Removed> {
        let (record, removed) = self.last_in(from, to)?;
        let at = self.position(record.offset);
        let (start, end) = (removed.offset, removed.end());
        let front = record.part(record.offset, start);
        let back = record.part(end, record.end());
        self.extents.splice(at..=at, [front, back].into_iter().flatten());
        Some(Removed { record, front, back, removed })
    }
}

/// Whether `right` continues `left` in the file, on the device, and in state.
fn continues(left: &Extent, right: &Extent) -> bool {
    left.end() == right.offset
        && left.start.0 + u64::from(left.len) == right.start.0
        && left.unwritten == right.unwritten
}

/// What removing a range did to one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The record as it was.
    pub record: Extent,
    /// The part that stays in front.
    pub front: Option<Extent>,
    /// The part that stays behind.
    pub back: Option<Extent>,
    /// The removed part.
    pub removed: Extent,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::FsBlock;

    fn extent(offset: u64, start: u64, len: u32) -> Extent {
        Extent { offset: FileBlock(offset), start: FsBlock(start), len, unwritten: false }
    }

    #[test]
    fn neighbours_merge_only_when_contiguous_in_both_spaces() {
        let mut list = ExtentList::default();
        assert_eq!(list.add(extent(0, 100, 4)), Added::Inserted(extent(0, 100, 4)));
        assert_eq!(list.add(extent(8, 108, 4)), Added::Inserted(extent(8, 108, 4)));
        assert_eq!(
            list.add(extent(4, 104, 4)),
            Added::Joined(extent(0, 100, 4), extent(8, 108, 4), extent(0, 100, 12))
        );
        assert_eq!(list.add(extent(12, 200, 1)), Added::Inserted(extent(12, 200, 1)));
        assert_eq!(
            list.add(extent(13, 201, 1)),
            Added::Grown(extent(12, 200, 1), extent(12, 200, 2))
        );
        assert_eq!(list.len(), 2);
    }

    #[test]
    fn a_record_never_passes_its_largest_length() {
        let mut list = ExtentList::default();
        list.add(extent(0, 100, MAX_EXTENT_LEN));
        let next = extent(u64::from(MAX_EXTENT_LEN), 100 + u64::from(MAX_EXTENT_LEN), 1);
        assert_eq!(list.add(next), Added::Inserted(next));
    }

    #[test]
    fn a_record_is_relocated_only_between_its_neighbours() {
        let before = [extent(0, 100, 4), extent(10, 200, 4), extent(20, 300, 4)];
        let mut list = ExtentList::from_sorted(before.to_vec());
        // Not a whole record; over a neighbour; behind one.
        assert!(!list.relocate(&extent(10, 200, 3), extent(8, 200, 3)));
        assert!(!list.relocate(&extent(10, 200, 4), extent(3, 200, 4)));
        assert!(!list.relocate(&extent(10, 200, 4), extent(17, 200, 4)));
        assert_eq!(list.as_slice(), before);
        assert!(list.relocate(&extent(10, 200, 4), extent(16, 200, 4)));
        assert!(list.relocate(&extent(16, 200, 4), extent(4, 200, 4)));
        // It would become one with its neighbour.
        let mut list = ExtentList::from_sorted(vec![extent(0, 100, 4), extent(10, 104, 4)]);
        assert!(!list.relocate(&extent(10, 104, 4), extent(4, 104, 4)));
        assert!(list.relocate(&extent(10, 104, 4), extent(5, 104, 4)));
    }

    #[test]
    fn removal_keeps_the_rest_of_the_record() {
        let mut list = ExtentList::from_sorted(vec![extent(0, 100, 10), extent(20, 300, 5)]);
        let removed = list.remove_last(FileBlock(3), FileBlock(6)).expect("mapped");
        assert_eq!(removed.removed, extent(3, 103, 3));
        assert_eq!(list.as_slice(), [extent(0, 100, 3), extent(6, 106, 4), extent(20, 300, 5)]);
        assert!(list.remove_last(FileBlock(10), FileBlock(20)).is_none());
        assert_eq!(list.gap(FileBlock(0), 1, 1), FileBlock(3));
        assert_eq!(list.gap(FileBlock(0), 4, 4), FileBlock(12));
        assert_eq!(list.gap(FileBlock(0), 100, 1), FileBlock(25));
    }
}

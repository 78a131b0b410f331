//! Where things are in a block of a tree.

use super::kind::{BlockPointer, BtreeKind};
use crate::format::{BmapRoot, HeaderLayout, TreeGeometry};
use std::ops::Range;

/// Where things are in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) geometry: TreeGeometry,
    /// Offset of the number of entries.
    pub(super) count_at: usize,
    /// Offset of the first record or key.
    pub(super) base: usize,
    /// Most entries.
    pub(super) max: usize,
    pub(super) leaf: bool,
}

impl Frame {
    /// A block at `level`.
    pub(super) fn block(geometry: &TreeGeometry, level: usize) -> Self {
        Self {
            geometry: *geometry,
            count_at: HeaderLayout::NUMRECS,
            base: geometry.layout.header_len(),
            max: geometry.max_entries(level),
            leaf: level == 0,
        }
    }

    /// The root inside an inode.
    pub(super) fn inline(geometry: &TreeGeometry, root: &BmapRoot) -> Self {
        Self {
            geometry: *geometry,
            count_at: BmapRoot::NUMRECS,
            base: BmapRoot::HEADER_LEN,
            max: root.capacity(),
            leaf: false,
        }
    }

    /// Which header the blocks of the tree carry.
    pub(super) const fn layout(&self) -> HeaderLayout {
        self.geometry.layout
    }

    #[inline]
    pub(super) fn record<K: BtreeKind>(&self, index: usize) -> usize {
        Sizes::of::<K>().record_at(self, index)
    }

    #[inline]
    pub(super) fn key<K: BtreeKind>(&self, index: usize) -> usize {
        Sizes::of::<K>().keys_at(self, index)
    }

    #[inline]
    pub(super) fn pointer<K: BtreeKind>(&self, index: usize) -> usize {
        Sizes::of::<K>().pointer_at(self, index)
    }
}

/// Bytes of what the entries of a tree consist of.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    record: usize,
    /// One key or two: what a node keeps for a child.
    pub(super) keys: usize,
    pointer: usize,
}

impl Sizes {
    pub(super) const fn of<K: BtreeKind>() -> Self {
        let keys = if K::OVERLAPPING { 2 * K::KEY_LEN } else { K::KEY_LEN };
        Self { record: K::RECORD_LEN, keys, pointer: K::Pointer::LEN }
    }

    #[inline]
    pub(super) const fn record_at(self, frame: &Frame, index: usize) -> usize {
        frame.base + (index - 1) * self.record
    }

    #[inline]
    pub(super) const fn keys_at(self, frame: &Frame, index: usize) -> usize {
        frame.base + (index - 1) * self.keys
    }

    #[inline]
    pub(super) const fn pointer_at(self, frame: &Frame, index: usize) -> usize {
        frame.base + frame.max * self.keys + (index - 1) * self.pointer
    }

    /// Where entries `first` up to, not including, `end` are: records and nothing, or keys and
    /// pointers.
    pub(super) fn parts(self, frame: &Frame, first: usize, end: usize) -> [Range<usize>; 2] {
        if frame.leaf {
            let records = self.record_at(frame, first)..self.record_at(frame, end);
            [records, frame.base..frame.base]
        } else {
            let keys = self.keys_at(frame, first)..self.keys_at(frame, end);
            [keys, self.pointer_at(frame, first)..self.pointer_at(frame, end)]
        }
    }
}

//! The entries of a block moved and copied as bytes: by code that all kinds of trees share.

use super::frame::{Frame, Sizes};
use crate::bytes::{EditBytes, be16};
use std::ops::Range;

/// The entries of a block, open for change.
pub(super) struct Entries<'a> {
    pub(super) edit: EditBytes<'a>,
    pub(super) frame: Frame,
    pub(super) sizes: Sizes,
}

impl Entries<'_> {
    pub(super) fn count(&self) -> usize {
        usize::from(be16(self.edit.bytes(), self.frame.count_at)).min(self.frame.max)
    }

    pub(super) fn set_count(&mut self, count: usize) {
        debug_assert!(count <= self.frame.max);
        // The largest block holds 8185 entries.
        self.edit.put_be16(self.frame.count_at, count as u16);
    }

    /// Moves the entries from `index` on `width` places up; the block has room. The entries in the
    /// gap are to be stored next.
    pub(super) fn open_gap(&mut self, index: usize, width: usize) {
        let count = self.count();
        self.shift(index..count + 1, index + width);
        self.set_count(count + width);
    }

    pub(super) fn remove_range(&mut self, index: usize, width: usize) {
        let count = self.count();
        self.shift(index + width..count + 1, index);
        self.set_count(count - width);
    }

    /// Moves entries so that the first is at `to`.
    fn shift(&mut self, entries: Range<usize>, to: usize) {
        let target = self.sizes.parts(&self.frame, to, to);
        let source = self.sizes.parts(&self.frame, entries.start, entries.end);
        for (from, to) in source.into_iter().zip(target) {
            self.edit.copy_within(from, to.start);
        }
    }

    /// Stores entries of another block from `to` on.
    pub(super) fn copy(&mut self, bytes: &[u8], frame: &Frame, entries: Range<usize>, to: usize) {
        let target = self.sizes.parts(&self.frame, to, to);
        let source = self.sizes.parts(frame, entries.start, entries.end);
        for (from, to) in source.into_iter().zip(target) {
            self.edit.put_bytes(to.start, &bytes[from]);
        }
    }
}

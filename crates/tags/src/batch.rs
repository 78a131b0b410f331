//! Several tags of one word.

use crate::tag::Tag;

/// Up to 64 tags that were got, or are put, in one step.
///
/// Like a [`Tag`], it is plain data: dropping it puts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "tags that are forgotten stay busy"]
pub struct TagBatch {
    /// Number of the tag of bit 0.
    base: u32,
    mask: u64,
    set: u32,
}

impl TagBatch {
    pub(crate) fn new(base: u32, mask: u64, set: u32) -> Self {
        Self { base, mask, set }
    }

    pub(crate) fn parts(self) -> (u32, u64) {
        (self.base, self.mask)
    }

    /// Number of tags.
    #[must_use]
    pub fn len(self) -> u32 {
        self.mask.count_ones()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.mask == 0
    }

    /// Takes the lowest tag out.
    pub fn pop(&mut self) -> Option<Tag> {
        if self.mask == 0 {
            return None;
        }
        let bit = self.mask.trailing_zeros();
        self.mask &= self.mask - 1;
        Some(Tag::new(self.base + bit, self.set))
    }

    /// The tags in rising order.
    pub fn iter(self) -> impl Iterator<Item = Tag> {
        let mut rest = self;
        std::iter::from_fn(move || rest.pop())
    }

    #[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "only debug builds check"))]
    pub(crate) fn check_set(self, set: u32) {
        debug_assert!(
            self.set == set,
            "a batch of set {} is put to set {set}: put it where it was got",
            self.set
        );
    }
}

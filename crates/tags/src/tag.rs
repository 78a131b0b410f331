//! The number that is handed out.

use std::fmt;

/// Number of a request in flight: from zero to below the depth of its set.
///
/// A plain number, so that it can travel through hardware queues and index tables; it may be copied,
/// and dropping it does not put it. In debug builds it remembers its set, and a put to another set
/// panics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag {
    number: u32,
    #[cfg(debug_assertions)]
    set: u32,
}

impl Tag {
    #[inline(always)]
    #[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "only debug builds check"))]
    pub(crate) fn new(number: u32, set: u32) -> Self {
        Self {
            number,
            #[cfg(debug_assertions)]
            set,
        }
    }

    /// The number.
    #[inline(always)]
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// The number, for indexing a table of requests.
    #[inline(always)]
    #[must_use]
    pub fn index(self) -> usize {
        self.number as usize
    }

    /// Panics in debug builds when the tag is of another set.
    #[inline(always)]
    #[cfg_attr(not(debug_assertions), allow(unused_variables, reason = "only debug builds check"))]
    pub(crate) fn check_set(self, set: u32) {
        #[cfg(debug_assertions)]
        assert!(
            self.set == set,
            "tag {} belongs to set {}, not to set {set}: put it where it was got",
            self.number,
            self.set
        );
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tag({})", self.number)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(formatter)
    }
}

//! The tags that a caller may take: all, or fewer.

/// The limits of a caller, kept with its place in a wait queue, so that a wake-up goes to a waiter
/// that can use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Demand {
    /// Reaches only so deep into the map.
    pub(crate) shallow: Option<u32>,
    /// Shares the map with other users: the number of this one.
    pub(crate) user: Option<u32>,
}

impl Demand {
    /// Whether a caller may fail while there are free tags.
    #[inline]
    pub(crate) fn is_limited(self) -> bool {
        self.shallow.is_some() || self.user.is_some()
    }
}

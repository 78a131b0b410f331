//! The tags that a caller may take: all, or a share.

/// The limit of a caller, kept with its place in a wait queue, so that a wake-up goes to a waiter
/// that can use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Demand {
    /// Shares the map with other users: the number of this one.
    pub(crate) user: Option<u32>,
}

impl Demand {
    /// Whether a caller may fail while there are free tags.
    #[inline]
    pub(crate) fn is_limited(self) -> bool {
        self.user.is_some()
    }
}

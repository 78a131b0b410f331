//! The summary of a group, read without its lock: enough to pass it by.

use std::sync::atomic::{AtomicU32, Ordering};

/// The figure of a group whose headers were not read yet.
const UNREAD: u32 = u32::MAX;

/// Figures of one group, as of the last change by a holder of the lock.
#[derive(Debug)]
pub struct GroupSummary {
    /// Longest extent that an ordinary request can get.
    longest: AtomicU32,
}

impl Default for GroupSummary {
    fn default() -> Self {
        Self { longest: AtomicU32::new(UNREAD) }
    }
}

impl GroupSummary {
    /// Longest extent that an ordinary request can get from the group, in blocks; `None` if the
    /// group was not read yet.
    #[must_use]
    pub fn longest(&self) -> Option<u32> {
        let longest = self.longest.load(Ordering::Relaxed);
        (longest != UNREAD).then_some(longest)
    }

    /// Publishes the figures of a locked group.
    pub(super) fn publish(&self, longest: u32) {
        self.longest.store(longest, Ordering::Relaxed);
    }
}

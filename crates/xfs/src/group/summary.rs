//! The summary of a group, read without its lock: enough to pass it by.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The figure of a group whose headers were not read yet.
const UNREAD: u32 = u32::MAX;

/// Figures of one group, as of the last change by a holder of the lock.
#[derive(Debug)]
pub struct GroupSummary {
    /// Longest extent that an ordinary request can get.
    longest: AtomicU32,
    /// No inode was to be had, and nothing has changed since.
    without_inodes: AtomicBool,
}

impl Default for GroupSummary {
    fn default() -> Self {
        Self { longest: AtomicU32::new(UNREAD), without_inodes: AtomicBool::new(false) }
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

    /// Whether the group had no inode to give when it was asked last, and has changed little since:
    /// others are asked before it.
    pub(crate) fn is_without_inodes(&self) -> bool {
        self.without_inodes.load(Ordering::Relaxed)
    }

    /// Publishes the figures of a locked group.
    pub(super) fn publish(&self, longest: u32, without_inodes: bool) {
        self.longest.store(longest, Ordering::Relaxed);
        self.without_inodes.store(without_inodes, Ordering::Relaxed);
    }
}

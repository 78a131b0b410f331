//! Requests, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// Requests, counted.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Counters {
    /// Counts a request until the guard is dropped.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay(self)
    }

    /// Requests so far.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Requests under way.
    pub(crate) fn under_way(&self) -> u64 {
        // In this order: a request that ends in between counts as under way.
        let ended = self.ended.load(Ordering::Relaxed);
        self.begun().saturating_sub(ended)
    }
}

/// A request that is under way.
pub(crate) struct UnderWay<'c>(&'c Counters);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

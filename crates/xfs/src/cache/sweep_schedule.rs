//! When which part of the table is swept, and how hard.
//!
//! The next part has its turn when some more came in ([`STEPS`]), which pays for it. So no single
//! operation waits for a sweep of everything, and however much has to stay because it is dirty,
//! nothing is swept for nothing again and again.

use super::buffer::MOST_AGE_CREDIT;
use super::shard::SHARDS;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes above which buffers are dropped, unless the user of the volume says otherwise.
const LIMIT: usize = 64 << 20;

/// How many parts of the limit there are of which one comes in between two sweeps: a round of sweeps
/// lets in an eighth.
const STEPS: usize = 8 * SHARDS;

/// The schedule of sweeps over the parts of the table.
#[derive(Debug)]
pub(super) struct SweepSchedule {
    limit: AtomicUsize,
    /// Bytes in memory above which the next part is due.
    due: AtomicUsize,
    /// Parts swept so far.
    pub(super) parts: AtomicUsize,
}

impl Default for SweepSchedule {
    fn default() -> Self {
        Self { limit: LIMIT.into(), due: LIMIT.into(), parts: AtomicUsize::new(0) }
    }
}

/// A sweep that is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// Which part of the table.
    pub(super) part: usize,
    /// The amount it takes off the age credit of buffers that were not used.
    pub(super) loss: u8,
}

impl SweepSchedule {
    /// Sets the bytes above which buffers are dropped.
    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
        self.due.store(bytes, Ordering::Relaxed);
    }

    /// The sweep that is due with `total` bytes in memory. Of the threads that see it, one gets it,
    /// and says when it is [done](Self::done).
    pub(super) fn claim(&self, total: usize) -> Option<Sweep> {
        let due = self.due.load(Ordering::Relaxed);
        if total <= due {
            return None;
        }
        let limit = self.limit.load(Ordering::Relaxed);
        let next = next_due(total, limit);
        self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        let part = self.parts.fetch_add(1, Ordering::Relaxed) % SHARDS;
        Some(Sweep { part, loss: loss(total - limit.min(total), limit) })
    }

    /// Ends a sweep that left `total` bytes in memory.
    pub(super) fn done(&self, total: usize) {
        self.due.store(next_due(total, self.limit.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}

/// Bytes in memory above which the sweep after one that leaves `total` is due.
fn next_due(total: usize, limit: usize) -> usize {
    limit.max(total + limit / STEPS)
}

/// The amount that a sweep takes off the age credit of buffers that were not used, when there are
/// `excess` bytes beyond the limit. Two rounds of sweeps let in a quarter, and have dropped by then
/// all buffers without age credit. If there is more, the age credit of the others ends within
/// another eighth.
fn loss(excess: usize, limit: usize) -> u8 {
    let most = usize::from(MOST_AGE_CREDIT) + 1;
    let loss = 1 + excess.saturating_sub(limit / 4).saturating_mul(most) / (limit / 8).max(1);
    // Below 17: it fits.
    loss.min(most) as u8
}

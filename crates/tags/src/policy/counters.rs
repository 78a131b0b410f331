//! Two ever-growing counters.

use super::{Policy, Wakes};
use crate::sync::{AtomicU64, Ordering};

/// Tags put while somebody waited, and wake-ups granted for them. The difference is what is still to
/// be spent; below a batch it is carried to the next put, never dropped. Nothing is ever reset, so a
/// put in the middle of another one (on the same thread, too) finds nothing half done.
#[derive(Debug)]
pub(super) struct Counters {
    completions: AtomicU64,
    granted: AtomicU64,
}

impl Counters {
    pub(super) fn new() -> Self {
        Self { completions: AtomicU64::new(0), granted: AtomicU64::new(0) }
    }
}

impl Policy for Counters {
    /// Spends every whole batch at once. Linux spends one per call and leaves the rest to later puts;
    /// then after a put of many tags, waiters sleep beside free tags for longer.
    fn freed(&self, wakes: &Wakes<'_>, freed: u32) {
        let freed = u64::from(freed);
        // The put that adds last sees the sum of all, so a batch is missed by nobody.
        let completions = self.completions.fetch_add(freed, Ordering::AcqRel).wrapping_add(freed);
        let mut granted = self.granted.load(Ordering::Acquire);
        let due = loop {
            // Negative when later puts were faster and have spent more than was there with ours.
            let unspent = completions.wrapping_sub(granted).cast_signed();
            let batch = i64::from(wakes.batch);
            #[cfg(loom)]
            let unspent = if crate::sync::sabotage::leaves_out(crate::sync::sabotage::Part::Carry) {
                unspent.min(freed.cast_signed())
            } else {
                unspent
            };
            if unspent < batch {
                return;
            }
            let due = (unspent - unspent % batch).cast_unsigned();
            match self.granted.compare_exchange(
                granted,
                granted.wrapping_add(due),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => break due,
                Err(now) => granted = now,
            }
        };
        wakes.anywhere(u32::try_from(due).unwrap_or(u32::MAX));
    }
}

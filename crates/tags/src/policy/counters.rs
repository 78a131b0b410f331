//! Two ever-growing counters, and the wake-ups that are spared.
//!
//! Tags put while a caller waited are counted, and so are the wake-ups granted for them; when the
//! two are a batch apart, wake-ups are due. That is the scheme of 2022. A wake-up costs the waiter
//! two context switches, though, and most of those granted so are for nothing: the tag has been
//! taken meanwhile by a thread that was running anyway. Two kinds are spared here:
//!
//! 1. Wake-ups for tags that are *not free any more*. Their holder will put them, and that put
//!    counts again.
//! 2. Wake-ups for tags that are *expected*: threads have been woken already, as many as there are
//!    tags or as can run at once, and have not begun to look. At the end of its wait each of them
//!    does here the work of a put, so the next thread is woken when the one before is there.
//!
//! # Why no waiter is lost
//!
//! Write *c* for the puts counted, *g* for wake-ups granted or spared, *f* for the free tags, *w*
//! for the threads that were woken and have not begun to look. While a caller waits, and apart from
//! puts between their bit and their count,
//!
//! > *f* <= *w* + (*c* - *g*) + wake-ups granted to tasks and callbacks and not used yet. (J)
//!
//! - A waiter that goes to sleep saw every tag busy after it was published: *f* was 0 (invariant
//!   I4).
//! - A put adds to both sides, a get takes from the left. A thread that begins to look is taken from
//!   *w* before; until it has a tag (which takes from *f*) or saw all busy (*f* = 0) it is about to
//!   look, and what it would have found is its own.
//! - A grant moves from *c* - *g* to *w* or to the tasks.
//! - To spare, [`Counters::spend`] reads *g*, then *c*, then *f*, then *w*, and moves *g* so that
//!   *c* - *g* is *f* - *w* at most. If another spends meanwhile, *g* has moved, and it begins anew. A
//!   put whose bit it did not see in *f* is not in the *c* that it read, as the bit is cleared before
//!   the count; so that put is still to be spent. A thread that it saw in *w* begins to look after
//!   that, and finds what was seen in *f* unless it was taken.
//!
//! *Progress* (invariant I3): suppose that every caller sleeps or is through, and one sleeps that
//! could use a tag. All tags have been put since it was published (invariant I1). Of the counts of
//! these last puts, look at the one that came last, and at its spending: all tags it could use are
//! free, and no caller takes one any more. If *w* = 0 then by (J) *c* - *g* is at least their
//! number, and that is at least a batch (see [`crate::wake_batch`]), so the sleeper is woken. If
//! *w* > 0, that thread begins to look afterwards (the barriers of [`crate::sync`]), finds a free
//! tag, and puts it: the put was not the last. Or it gives up, and passes its wake-up on (invariant
//! I5), or has limits, and passes it on to a waiter that would find one.
//!
//! *No tag waits for long*: when a put has spent, fewer than a batch of free tags are without a
//! grant, or as many threads are on their way as can run. These come here at the end of their wait,
//! each for whatever is left, be it less than a batch. That is why only threads count in *w*: a
//! task that was woken may not be polled for a long time, and a callback's dispatcher may be busy
//! elsewhere. They hold up no waiter.

use super::wakes::{Policy, Wakes};
use crate::sync::{self, AtomicU64, Ordering};

/// The difference is still to be spent; below a batch it is carried to the next put. Nothing is
/// ever reset, so a put in the middle of another one (on the same thread, too) finds nothing half
/// done.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Tags put while a caller waited.
    completions: AtomicU64,
    /// Wake-ups granted for them, or spared.
    granted: AtomicU64,
    /// Threads that may be on their way at once.
    at_once: u32,
}

impl Counters {
    pub(crate) fn new(at_once: u32) -> Self {
        Self { completions: AtomicU64::new(0), granted: AtomicU64::new(0), at_once }
    }

    /// Grants the wake-ups due if they are `least` or more, and spares those that would be for
    /// nothing.
    ///
    /// Linux spends one batch per call and leaves the rest to later puts; then after a put of many
    /// tags, waiters sleep beside free tags for longer.
    fn spend(&self, wakes: &Wakes<'_>, mut least: u32) {
        loop {
            let granted = self.granted.load(Ordering::Acquire);
            // Read after `granted`, which never overtakes it.
            let completions = self.completions.load(Ordering::Acquire);
            let due = u32::try_from(completions.wrapping_sub(granted)).unwrap_or(u32::MAX);
            #[cfg(loom)]
            let due = if sync::sabotage::leaves_out(sync::sabotage::Part::Carry) {
                // The counts of a single put.
                due.min(1)
            } else {
                due
            };
            if due < least || wakes.queues.called() >= self.at_once {
                return;
            }
            let free = wakes.available.bitmap.count_free(due.saturating_add(self.at_once));
            let called = wakes.queues.called();
            if called >= self.at_once {
                return;
            }
            let due = due.min(free.saturating_sub(called));
            let grant = if due < least { 0 } else { due.min(self.at_once - called) };
            let rest = u64::from(due - grant);
            let moved = self.granted.compare_exchange(
                granted,
                completions.wrapping_sub(rest),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if moved.is_err() {
                continue;
            }
            if grant == 0 || wakes.anywhere(grant) == 0 {
                return;
            }
            // A batch that is begun is finished: now, by the waiters on their way, or both.
            least = 1;
        }
    }
}

impl Policy for Counters {
    fn freed(&self, wakes: &Wakes<'_>, freed: u32) {
        // The put that adds last sees the sum of all, so no batch is missed.
        self.completions.fetch_add(u64::from(freed), Ordering::AcqRel);
        sync::barrier_after_count();
        self.spend(wakes, wakes.batch);
    }

    fn look_again(&self, wakes: &Wakes<'_>) {
        // Less than a batch was left to later puts only if no batch was begun.
        self.spend(wakes, 1);
    }
}

//! A waiter's place in a queue, as the waiter holds it.

use std::sync::Arc;

use crate::demand::Demand;
use crate::pool::Pool;
use crate::sync::{self, Ordering};
use crate::wait::{Queue, Signal, Ticket};

/// A place in a queue. Dropping it gives it up; if the waiter has been woken meanwhile, the wake-up
/// goes to the next (invariant I5). A waiter that looks for a tag because of its wake-up says so
/// with [`Place::answer`], and goes back with [`Place::publish_again`] if it found none.
#[derive(Debug)]
pub(crate) struct Place {
    pool: Arc<Pool>,
    queue: usize,
    ticket: Ticket,
    demand: Demand,
    is_thread: bool,
    /// Whether there is a wake-up to come, or one that is not answered.
    open: bool,
}

impl Place {
    /// Publishes a new waiter at the end of `queue`.
    pub(crate) fn publish(pool: &Arc<Pool>, queue: usize, signal: Signal, demand: Demand) -> Self {
        let queues = pool.queues();
        let is_thread = signal.is_thread();
        let ticket = queues.queues[queue].publish(None, signal, demand, &queues.waiting);
        sync::barrier_after_publish();
        Self { pool: Arc::clone(pool), queue, ticket, demand, is_thread, open: true }
    }

    /// Publishes a waiter again that was woken and found nothing, at its old place.
    pub(crate) fn publish_again(&mut self, signal: Signal) {
        let queues = self.pool.queues();
        self.open = true;
        self.queue().publish(Some(self.ticket), signal, self.demand, &queues.waiting);
        sync::barrier_after_publish();
    }

    /// Whether this waiter has been woken.
    pub(crate) fn is_woken(&self) -> bool {
        self.queue().is_woken(self.ticket, None)
    }

    /// As [`Place::is_woken`]; a waiter not yet woken will be told through `signal`.
    pub(crate) fn is_woken_or_tell(&self, signal: Signal) -> bool {
        self.queue().is_woken(self.ticket, Some(signal))
    }

    /// The waiter was woken, found nothing, and is about to sleep again.
    ///
    /// One with limits may have found nothing because of them, while there are free tags: its
    /// wake-up goes to a waiter that would find one now. Without a free tag no waiter is woken:
    /// waiters would wake each other without end, and the faster caller will put its tag.
    pub(crate) fn sleep_again(&self) {
        if self.demand.is_limited() {
            self.pass_on(|demand| self.pool.available().would_find(demand));
        }
    }

    /// The waiter was woken and is about to look for a tag: the wake-up is spent.
    pub(crate) fn answer(&mut self) {
        self.open = false;
        if self.is_thread {
            self.pool.queues().called.fetch_sub(1, Ordering::SeqCst);
            sync::barrier_after_answer();
        }
    }

    fn queue(&self) -> &Queue {
        &self.pool.queues().queues[self.queue]
    }

    fn pass_on(&self, can_use: impl Fn(Demand) -> bool + Copy) {
        #[cfg(loom)]
        if sync::sabotage::leaves_out(sync::sabotage::Part::PassingOn) {
            return;
        }
        if self.pool.queues().wake(1, can_use) > 0 {
            self.queue().count(|counts| counts.passed_on += 1);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.open && !self.queue().leave(self.ticket, &self.pool.queues().waiting) {
            self.answer();
            self.pass_on(|demand| self.pool.available().could_use(demand));
        }
    }
}

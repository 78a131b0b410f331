//! The interface of the policies, and their view of the set.

use std::fmt;

use crate::available::Available;
use crate::wait::Queues;

/// The interface of the policies.
pub(crate) trait Policy: fmt::Debug + Send + Sync {
    /// `freed` tags were put, at least one, and a caller waited.
    fn freed(&self, wakes: &Wakes<'_>, freed: u32);

    /// The largest batch that still wakes all waiters when a waiter can count on `usable` puts. One
    /// batch suffices if it goes to any waiters, in any queue.
    fn most_batch(&self, usable: u32) -> u32 {
        usable
    }

    /// A waiter has a tag and waits no more, and another caller waits.
    fn look_again(&self, _wakes: &Wakes<'_>) {}
}

/// The view of the set that a policy works with.
pub(crate) struct Wakes<'a> {
    /// The wait queues.
    pub(crate) queues: &'a Queues,
    /// Says which waiters could use a wake-up now.
    pub(crate) available: Available<'a>,
    /// The wake batch, 1 to 8 unless the builder set another.
    pub(crate) batch: u32,
}

impl Wakes<'_> {
    /// Wakes up to `most` waiters, spread over the queues; returns how many.
    pub(crate) fn anywhere(&self, most: u32) -> u32 {
        self.queues.wake(most, |demand| self.available.could_use(demand))
    }

    /// Wakes up to `most` waiters of one queue; returns how many.
    pub(crate) fn in_queue(&self, queue: usize, most: u32) -> u32 {
        self.queues.wake_queue(queue, most, |demand| self.available.could_use(demand))
    }
}

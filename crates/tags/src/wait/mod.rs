//! Wait queues: the waiters, their order, and how they are woken.
//!
//! A waiter is a thread, a task or a callback; all three stand in the same queues, in order of
//! arrival ([`queue`]). A waiter that is woken and finds no tag, because another was faster, goes
//! back to its old place, not to the end.

mod queue;
mod signal;

pub(crate) use queue::{Queue, Ticket};
pub(crate) use signal::{Callback, Signal};

use crossbeam_utils::CachePadded;

use crate::demand::Demand;
use crate::statistics::WaitCounts;
use crate::sync::{AtomicU32, AtomicUsize, Ordering};

/// The wait queues of one pool of tags.
#[derive(Debug)]
pub(crate) struct Queues {
    /// Waiters in all queues: all that a put reads when no caller waits.
    pub(crate) waiting: CachePadded<AtomicUsize>,
    /// The queue that the next walk begins with.
    next: CachePadded<AtomicUsize>,
    /// Threads that were woken and have not begun to look for a tag. They will, unlike tasks, which
    /// their executor may keep from running; so others may be spared the way on their account.
    pub(crate) called: CachePadded<AtomicU32>,
    pub(crate) queues: Box<[CachePadded<Queue>]>,
}

impl Queues {
    pub(crate) fn new(queues: usize) -> Self {
        Self {
            waiting: CachePadded::new(AtomicUsize::new(0)),
            next: CachePadded::new(AtomicUsize::new(0)),
            called: CachePadded::new(AtomicU32::new(0)),
            queues: (0..queues).map(|_| CachePadded::new(Queue::new())).collect(),
        }
    }

    /// Number of queues.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Number of waiters. `SeqCst`: this is the look for waiters of [`crate::sync`].
    #[inline(always)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Number of threads that were woken and have not begun to look.
    pub(crate) fn called(&self) -> u32 {
        self.called.load(Ordering::SeqCst)
    }

    /// Whether a caller waits in one queue. The same look as [`Queues::waiting`]: a waiter that is
    /// not seen here sees the tag that the caller has put.
    pub(crate) fn has_waiters(&self, queue: usize) -> bool {
        self.queues[queue].len() != 0
    }

    /// Wakes up to `most` waiters for which `can_use` holds, from all queues in turn; returns how
    /// many.
    ///
    /// The turn goes on before a queue is looked at, so a put that comes in between begins with the
    /// next one, and it is stored once, since a store for each queue would be felt.
    pub(crate) fn wake(&self, most: u32, can_use: impl Fn(Demand) -> bool + Copy) -> u32 {
        let first = self.next.load(Ordering::Relaxed);
        let mut woken = 0;
        let mut next = first;
        for step in 0..self.len() {
            let queue = (first + step) % self.len();
            next = (queue + 1) % self.len();
            woken += self.wake_queue(queue, most - woken, can_use);
            if woken == most {
                break;
            }
        }
        if next != first {
            self.next.store(next, Ordering::Relaxed);
        }
        woken
    }

    /// Wakes up to `most` waiters of one queue for which `can_use` holds; returns how many.
    pub(crate) fn wake_queue(
        &self,
        queue: usize,
        most: u32,
        can_use: impl Fn(Demand) -> bool,
    ) -> u32 {
        if !self.has_waiters(queue) {
            return 0;
        }
        self.take(&self.queues[queue], most, can_use)
    }

    /// Wakes up to `most` waiters of a queue for which `can_use` holds; returns how many.
    fn take(&self, queue: &Queue, most: u32, can_use: impl Fn(Demand) -> bool) -> u32 {
        let woken = queue.take(most, can_use, &self.waiting, &self.called);
        let count = woken.len();
        woken.send();
        count
    }

    /// Wakes all waiters, also those that could not use a tag before the change.
    pub(crate) fn wake_everybody(&self) {
        for queue in &self.queues {
            self.take(queue, u32::MAX, |_| true);
        }
    }

    /// Sums over all queues.
    pub(crate) fn counts(&self) -> WaitCounts {
        self.queues.iter().map(|queue| queue.counts()).sum()
    }

    /// Waiters per queue.
    pub(crate) fn lengths(&self) -> Vec<usize> {
        self.queues.iter().map(|queue| queue.len()).collect()
    }
}

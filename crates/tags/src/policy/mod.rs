//! Who decides, after a put, how many waiters are woken, and in which queues.
//!
//! A policy is asked only when somebody waits. Whatever it decides must wake every sleeper in the
//! end (invariant I3): a sleeper saw every tag busy after it was published, so at least as many puts
//! are still to come as there are tags; [`crate::wake_batch`] keeps the batch small enough that
//! these puts make up enough batches for all queues. The argument for [`counters`] is there.

mod counters;
mod cyclic;
mod one_or_all;

use std::fmt;

use crate::wait::Queues;

/// How waiters are woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WakePolicy {
    /// Two ever-growing counters for the whole set, of tags put and of wake-ups granted; when they are
    /// a batch apart, waiters are woken, spread over the queues. Linux since 6.2 (2022), with the
    /// repairs of 2023; see [the thread](https://lkml.org/lkml/2022/11/5/274). Unlike there, no
    /// wake-up is granted for a tag that somebody else has taken meanwhile, nor while as many threads
    /// as can run are on their way from their wake-up to the tags; these see to the rest.
    #[default]
    Counters,
    /// Each queue counts puts down from a batch; at zero it wakes a batch of its own waiters and the
    /// next queue's turn begins. Linux from 3.16 to 6.1 (2014). The count down and its restart are
    /// one step here; they were two there, and a put between the two could get lost.
    CyclicBatches,
    /// Every put wakes one waiter.
    WakeOne,
    /// Every put wakes everybody; all but one of them woke for nothing.
    WakeAll,
}

/// The interface of the policies.
pub(crate) trait Policy: fmt::Debug + Send + Sync {
    /// `freed` tags were put, at least one, and somebody waited.
    fn freed(&self, wakes: &Wakes<'_>, freed: u32);

    /// A waiter has a tag and waits no more, and somebody else waits.
    fn look_again(&self, _wakes: &Wakes<'_>) {}
}

/// What a policy has to work with.
pub(crate) struct Wakes<'a> {
    /// The wait queues.
    pub(crate) queues: &'a Queues,
    /// Says which waiters could use a wake-up now.
    pub(crate) pool: &'a crate::pool::Pool,
    /// The wake batch, 1 to 8 unless the builder set another.
    pub(crate) batch: u32,
}

impl Wakes<'_> {
    /// Wakes up to `most` waiters, spread over the queues; returns how many.
    pub(crate) fn anywhere(&self, most: u32) -> u32 {
        self.queues.wake(most, |demand| self.pool.could_use(demand))
    }

    /// Wakes up to `most` waiters of one queue; returns how many.
    pub(crate) fn in_queue(&self, queue: usize, most: u32) -> u32 {
        self.queues.wake_queue(queue, most, |demand| self.pool.could_use(demand))
    }
}

impl WakePolicy {
    /// The policy for a set with this many wait queues, this batch at first, and so many threads that
    /// can run at once.
    pub(crate) fn make(self, queues: usize, batch: u32, threads: u32) -> Box<dyn Policy> {
        match self {
            Self::Counters => Box::new(counters::Counters::new(threads)),
            Self::CyclicBatches => Box::new(cyclic::CyclicBatches::new(queues, batch)),
            Self::WakeOne => Box::new(one_or_all::WakeOne),
            Self::WakeAll => Box::new(one_or_all::WakeAll),
        }
    }

    /// The largest batch that still wakes everybody when a waiter can count on `usable` puts.
    ///
    /// With counters one batch suffices: it goes to whoever waits, in whichever queue. A batch in turn
    /// goes to one queue, so every queue needs one of its own.
    pub(crate) fn most_batch(self, usable: u32, queues: usize) -> u32 {
        match self {
            Self::CyclicBatches => (usable / queues as u32).max(1),
            Self::Counters | Self::WakeOne | Self::WakeAll => usable,
        }
    }
}

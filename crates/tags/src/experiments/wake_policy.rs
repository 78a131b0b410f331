//! The choice among the policies.

use super::cyclic::CyclicBatches;
use super::one_or_all::{WakeAll, WakeOne};
use crate::policy::{Counters, Policy};

/// How waiters are woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WakePolicy {
    /// Two ever-growing counters for the whole set, of tags put and of wake-ups granted; when they
    /// are a batch apart, waiters are woken, spread over the queues. Linux since 6.2 (2022), with
    /// the repairs of 2023; see [the thread](https://lkml.org/lkml/2022/11/5/274). Unlike there, no
    /// wake-up is granted for a tag that another caller has taken meanwhile, nor while as many
    /// threads as can run are on their way from their wake-up to the tags; these see to the rest.
    #[default]
    Counters,
    /// Each queue counts puts down from a batch; at zero it wakes a batch of its own waiters and the
    /// next queue's turn begins. Linux from 3.16 to 6.1 (2014). The count down and its restart are
    /// one step here; they were two there, and a put between the two could get lost.
    CyclicBatches,
    /// Every put wakes one waiter.
    WakeOne,
    /// Every put wakes all waiters; all but one of them wake for nothing.
    WakeAll,
}

impl WakePolicy {
    /// The policy, for a set with so many wait queues.
    pub(crate) fn make(self, queues: usize, threads_at_once: u32) -> Box<dyn Policy> {
        match self {
            Self::Counters => Box::new(Counters::new(threads_at_once)),
            Self::CyclicBatches => Box::new(CyclicBatches::new(queues)),
            Self::WakeOne => Box::new(WakeOne),
            Self::WakeAll => Box::new(WakeAll),
        }
    }
}

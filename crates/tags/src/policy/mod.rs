//! Wake policies: after a put they decide how many waiters are woken, and in which queues.
//!
//! A policy is asked only when a caller waits. Its decisions must wake every sleeper in the end
//! (invariant I3): a sleeper saw every tag busy after it was published, so at least as many puts
//! are still to come as there are tags; [`crate::wake_batch`] keeps the batch small enough that
//! these puts make up enough batches for all queues. The argument for [`counters`] is there.

mod counters;
mod cyclic;
mod one_or_all;
mod wake_policy;
mod wakes;

pub use wake_policy::WakePolicy;
pub(crate) use wakes::{Policy, Wakes};

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
}

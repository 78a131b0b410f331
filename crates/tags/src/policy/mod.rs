//! Wake policies: after a put they decide how many waiters are woken, and in which queues.
//!
//! A policy is asked only when a caller waits. Its decisions must wake every sleeper in the end
//! (invariant I3): a sleeper saw every tag busy after it was published, so at least as many puts
//! are still to come as there are tags; [`crate::wake_batch`] keeps the batch small enough that
//! these puts make up enough batches for all queues. The argument for [`counters`] is there.

mod counters;
mod wakes;

pub(crate) use counters::Counters;
pub(crate) use wakes::{Policy, Wakes};

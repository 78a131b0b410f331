//! The plug of a device, as block layers had it before plugs were per thread: for comparison. It
//! stands in front of the queue of a leaf; one without it knows nothing of it.

mod queue;
mod requests;

pub(crate) use queue::StagedQueue;

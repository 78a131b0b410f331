//! How a driver with threads of its own hands in what ended.

use std::fmt;
use std::sync::Arc;

use super::completions::Completions;

/// Through which a driver hands in what ended from threads of its own, as a disk does by
/// interrupts, instead of by [`reap`](crate::DriverQueue::reap).
#[derive(Clone)]
pub struct Completer {
    complete: Arc<Complete>,
}

/// Answers what ended in the hardware queue with this index.
type Complete = dyn Fn(usize, &mut Completions) + Send + Sync;

impl Completer {
    /// One that answers by `complete`.
    pub(crate) fn new(complete: impl Fn(usize, &mut Completions) + Send + Sync + 'static) -> Self {
        Self { complete: Arc::new(complete) }
    }

    /// Answers `completions` of the hardware queue with this
    /// [index](crate::QueueContext::index), in the calling thread. Receivers may submit: the driver
    /// must hold no lock that it takes to start a request.
    pub fn complete(&self, queue: usize, completions: &mut Completions) {
        (self.complete)(queue, completions);
    }
}

impl fmt::Debug for Completer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer").finish_non_exhaustive()
    }
}

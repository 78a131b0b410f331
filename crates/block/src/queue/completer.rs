//! How a driver with threads of its own hands in what ended.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};

use super::hardware_set::Via;
use super::home;
use super::shared::Shared;
use crate::driver::{Completions, Driver};
use crate::drivers::Bell;

/// Through which a driver hands in what ended from threads of its own, as a disk does by
/// interrupts, instead of by [`reap`](crate::DriverQueue::reap).
#[derive(Clone)]
pub struct Completer {
    complete: Arc<Complete>,
}

/// Answers what ended in the hardware queue with this index.
type Complete = dyn Fn(usize, &mut Completions) + Send + Sync;

impl Completer {
    /// For the driver of `leaf`.
    pub(super) fn of<D: Driver>(leaf: &Weak<Shared<D>>) -> Self {
        let leaf = Weak::clone(leaf);
        let complete = move |index: usize, completions: &mut Completions| {
            if let Some(leaf) = leaf.upgrade() {
                let hardware = leaf.hardware.at(index);
                let finish = || leaf.finish(&hardware, completions, Via::Elsewhere, Bell::wake);
                let finished = catch_unwind(AssertUnwindSafe(finish));
                home::leave(leaf);
                if let Err(panic) = finished {
                    resume_unwind(panic);
                }
            }
            // Without a leaf they were answered at their limit.
            completions.ended.clear();
        };
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

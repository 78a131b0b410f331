//! The interface by which a driver with threads of its own hands in requests.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};

use super::shared::Shared;
use crate::driver::{Bell, Completer, Completions, Driver};
use crate::queue::hardware::Via;
use crate::request::dropped;

/// A completer for the driver of `leaf`.
pub(super) fn completer<D: Driver>(leaf: &Weak<Shared<D>>) -> Completer {
    let leaf = Weak::clone(leaf);
    Completer::new(move |index: usize, completions: &mut Completions| {
        if let Some(leaf) = leaf.upgrade() {
            let hardware: Arc<_> = leaf.hardware.at(index);
            let finish = || leaf.finish(&hardware, completions, Via::Elsewhere, Bell::wake);
            let finished = catch_unwind(AssertUnwindSafe(finish));
            dropped::leave(leaf);
            if let Err(panic) = finished {
                resume_unwind(panic);
            }
        }
        // Without a leaf they were answered at their limit.
        completions.ended.clear();
    })
}

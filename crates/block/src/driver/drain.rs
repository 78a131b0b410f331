//! The end of a driver queue.

use super::completions::Completions;
use super::contract::{DriverQueue, Wait};

/// Waits for everything in `queue`, a queue of the device `name` that is about to be closed. What
/// came from a leaf goes back there, which knows whether it was answered.
pub(crate) fn drain(queue: &mut impl DriverQueue, name: &str) {
    let mut completions = Completions::default();
    while queue.in_flight() > 0 && queue.reap(&mut completions, Wait::Forever).is_ok() {
        for request in completions.ended.drain(..) {
            if request.inner.leaf == 0 {
                request.answer(name);
            }
        }
    }
}

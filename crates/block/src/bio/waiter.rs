//! Waiting for one bio.

use std::sync::Arc;

use parking_lot::Mutex;

use super::completion::Completion;
use crate::threads::{Event, role};

/// The receiving end of one completion, from [`Bio::waited`](crate::Bio::waited).
#[derive(Debug)]
#[must_use = "an ignored waiter ignores the error of its bio"]
pub struct Waiter {
    slot: Arc<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    completion: Mutex<Option<Completion>>,
    arrived: Event,
}

/// A callback that delivers a completion, and the waiter that it is delivered to.
pub(crate) fn waiter() -> (impl FnOnce(Completion) + Send + 'static, Waiter) {
    let slot = Arc::new(Slot::default());
    let deliver = {
        let slot = Arc::clone(&slot);
        move |completion| {
            *slot.completion.lock() = Some(completion);
            slot.arrived.notify();
        }
    };
    (deliver, Waiter { slot })
}

impl Waiter {
    /// Whether the bio has completed: [`wait`](Self::wait) would not sleep.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.slot.completion.lock().is_some()
    }

    /// Sleeps until the bio has completed; flushes the plugs of this thread first.
    ///
    /// Must not be called in a completion callback.
    #[must_use]
    pub fn wait(self) -> Completion {
        debug_assert!(!role::is_in_callback(), "a completion callback must not wait");
        self.slot.arrived.wait_unplugged(|| self.slot.completion.lock().take())
    }
}

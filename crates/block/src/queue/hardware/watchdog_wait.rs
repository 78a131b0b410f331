//! How the watchdog of a leaf sleeps: until the next time limit, or until it is told
//! that there is something new.
//!
//! A thread that starts requests must not wake it each time. All limits of a leaf are the same, so
//! a request started later is due later: the thread has to be told only when it sleeps without a
//! time. A model at the end of this file checks that it does not sleep through the first one.

use std::time::Instant;

use crate::threads::Event;
use crate::threads::sync::{AtomicBool, Ordering};

/// Where the watchdog of a leaf waits for something to do.
#[derive(Debug)]
pub(crate) struct WatchdogWait {
    /// Whether the thread sleeps, or is about to, without a time.
    idle: AtomicBool,
    changed: Event,
}

/// The state that the thread sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due<T> {
    /// Something to do.
    Now(T),
    /// Nothing before this time.
    At(Instant),
    /// Nothing.
    Nothing,
}

impl Default for WatchdogWait {
    fn default() -> Self {
        Self { idle: AtomicBool::new(false), changed: Event::default() }
    }
}

impl WatchdogWait {
    /// Tells of a request that is due at some time, not before those told earlier. It was put,
    /// under a lock, where the thread looks.
    pub(crate) fn tell(&self) {
        // The thread says that it is idle before it looks, under the same lock: it sees the request
        // put there, or this sees that it is idle.
        if self.idle.load(Ordering::Relaxed) {
            self.changed.notify();
        }
    }

    /// Has the thread look now.
    pub(crate) fn call(&self) {
        self.changed.notify();
    }

    /// Sleeps until `look` sees something to do; it is asked at first, at the times that it says,
    /// and when it is told of something.
    pub(crate) fn watch<T>(&self, mut look: impl FnMut() -> Due<T>) -> T {
        self.changed.wait_with_deadline(|| {
            self.idle.store(true, Ordering::Relaxed);
            let due = look();
            if !matches!(due, Due::Nothing) {
                self.idle.store(false, Ordering::Relaxed);
            }
            match due {
                Due::Now(found) => Ok(found),
                Due::At(time) => Err(Some(time)),
                Due::Nothing => Err(None),
            }
        })
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::threads::sync::Mutex;

    #[test]
    fn an_idle_thread_hears_of_due_requests() {
        loom::model(|| {
            let state = Arc::new((WatchdogWait::default(), Mutex::new(0)));
            let starter = {
                let state = Arc::clone(&state);
                thread::spawn(move || {
                    *state.1.lock() += 1;
                    state.0.tell();
                })
            };
            state.0.watch(|| match *state.1.lock() {
                0 => Due::Nothing,
                _ => Due::Now(()),
            });
            starter.join().unwrap();
        });
    }
}

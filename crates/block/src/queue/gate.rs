//! The gate through which requests enter a leaf, and how a thread waits until none is inside.
//!
//! The fast path shares no counter. Each hardware queue counts the requests that entered and those
//! that were answered ([`Activity`]); a thread that wants the leaf idle shuts the gate and adds the
//! counts up. Both sides write, pass a full barrier, and look: either the one that enters sees the
//! gate shut and goes back, or the other sees that a request entered. The models check it.

use crate::statistics::Writers;
use crate::threads::Event;
use crate::threads::sync::{AtomicBool, AtomicU64, Ordering, fence};

/// What one hardware queue has to do with its leaf being idle. Counts requests.
#[derive(Debug)]
pub(crate) struct Activity {
    entered: AtomicU64,
    answered: AtomicU64,
    /// Answered outside the threads that drive the queue.
    answered_elsewhere: AtomicU64,
}

/// Whether a leaf takes requests: until it is closed.
#[derive(Debug)]
pub(crate) struct Gate {
    closed: AtomicBool,
    /// Something was answered, or the gate was closed.
    changed: Event,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            entered: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            answered_elsewhere: AtomicU64::new(0),
        }
    }
}

impl Activity {
    /// Adds to a count that has one writer, or any number.
    fn add(count: &AtomicU64, more: u64, writers: Writers) {
        match writers {
            Writers::One => {
                let sum = count.load(Ordering::Relaxed).wrapping_add(more);
                count.store(sum, Ordering::Release);
            }
            Writers::Many => {
                count.fetch_add(more, Ordering::Release);
            }
        }
    }

    pub(crate) fn entered(&self) -> u64 {
        self.entered.load(Ordering::Acquire)
    }

    /// Requests that were answered, wherever that was.
    pub(crate) fn answered(&self) -> u64 {
        let elsewhere = self.answered_elsewhere.load(Ordering::Acquire);
        self.answered.load(Ordering::Acquire).wrapping_add(elsewhere)
    }

    /// Whether a request is inside; one that enters at this moment may be missed.
    pub(crate) fn is_inside(&self) -> bool {
        self.answered() != self.entered()
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self { closed: AtomicBool::new(false), changed: Event::default() }
    }
}

impl Gate {
    /// Lets `requests` requests in, counted in `activity`; returns false if the gate is closed.
    pub(crate) fn enter(&self, activity: &Activity, requests: u64, writers: Writers) -> bool {
        Activity::add(&activity.entered, requests, writers);
        // Pairs with the one in `close`.
        fence(Ordering::SeqCst);
        if !self.closed.load(Ordering::Acquire) {
            return true;
        }
        Activity::add(&activity.entered, requests.wrapping_neg(), writers);
        self.changed.notify();
        false
    }

    /// Counts `requests` requests as answered by the thread that drives their hardware queue.
    pub(crate) fn leave(&self, activity: &Activity, requests: u64, writers: Writers) {
        Activity::add(&activity.answered, requests, writers);
        self.changed.notify();
    }

    /// Counts `requests` requests as answered by another thread.
    pub(crate) fn leave_elsewhere(&self, activity: &Activity, requests: u64) {
        activity.answered_elsewhere.fetch_add(requests, Ordering::Release);
        self.changed.notify();
    }

    /// Closes the gate; wait for idleness afterwards.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.changed.notify();
    }

    /// Makes waiting threads look again.
    pub(crate) fn changed(&self) {
        self.changed.notify();
    }

    /// Sleeps until `ready`, which is asked after each change.
    pub(crate) fn wait_until<T>(&self, ready: impl FnMut() -> Option<T>) -> T {
        self.changed.wait_until(ready)
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::sync::atomic::AtomicUsize;
    use loom::thread;

    use super::*;

    #[test]
    fn nothing_is_inside_a_closed_gate() {
        loom::model(|| {
            let state = Arc::new((Gate::default(), Activity::default(), AtomicUsize::new(0)));
            let submitter = {
                let state = Arc::clone(&state);
                thread::spawn(move || {
                    let (gate, activity, inside) = &*state;
                    if gate.enter(activity, 1, Writers::One) {
                        inside.store(1, Ordering::Relaxed);
                        inside.store(0, Ordering::Relaxed);
                        gate.leave(activity, 1, Writers::One);
                    }
                })
            };
            let (gate, activity, inside) = &*state;
            gate.close();
            gate.wait_until(|| (!activity.is_inside()).then_some(()));
            assert_eq!(inside.load(Ordering::Relaxed), 0);
            submitter.join().unwrap();
        });
    }

    #[test]
    fn an_answer_from_elsewhere_ends_the_wait_for_idleness() {
        loom::model(|| {
            let state = Arc::new((Gate::default(), Activity::default()));
            assert!(state.0.enter(&state.1, 1, Writers::One));
            let other = {
                let state = Arc::clone(&state);
                thread::spawn(move || state.0.leave_elsewhere(&state.1, 1))
            };
            let (gate, activity) = &*state;
            gate.wait_until(|| (!activity.is_inside()).then_some(()));
            other.join().unwrap();
        });
    }
}

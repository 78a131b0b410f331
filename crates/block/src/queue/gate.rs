//! The gate through which requests enter a leaf, and how a thread waits until none is inside.
//!
//! The fast path shares no counter. Each hardware queue counts the requests that entered and those
//! that were answered ([`Activity`]); a thread that wants the leaf idle shuts the gate and adds the
//! counts up. Both sides write, pass a full barrier, and look: either the one that enters sees the
//! gate shut and goes back, or the other sees that a request entered. The models check it.

use crate::statistics::Writers;
use crate::threads::Event;
use crate::threads::sync::{AtomicU64, Ordering, fence};

/// What one hardware queue has to do with its leaf being idle. Counts requests.
#[derive(Debug)]
pub(crate) struct Activity {
    entered: AtomicU64,
    answered: AtomicU64,
    /// Answered outside the threads that drive the queue.
    answered_elsewhere: AtomicU64,
}

/// Whether a leaf takes requests.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Number of threads that froze the leaf, and [`CLOSED`].
    shut: AtomicU64,
    /// Something was answered, or the gate was opened.
    changed: Event,
}

/// Bit of [`Gate::shut`]: for good.
const CLOSED: u64 = 1 << 63;

/// Why requests cannot enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shut {
    /// Until it is unfrozen.
    Frozen,
    /// For good.
    Closed,
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
        Self { shut: AtomicU64::new(0), changed: Event::default() }
    }
}

impl Gate {
    /// Lets `requests` requests in, counted in `activity`, unless the gate is shut.
    pub(crate) fn enter(
        &self,
        activity: &Activity,
        requests: u64,
        writers: Writers,
    ) -> Result<(), Shut> {
        Activity::add(&activity.entered, requests, writers);
        // Pairs with the one in `freeze` and `close`.
        fence(Ordering::SeqCst);
        let shut = self.shut.load(Ordering::Acquire);
        if shut == 0 {
            return Ok(());
        }
        Activity::add(&activity.entered, requests.wrapping_neg(), writers);
        self.changed.notify();
        Err(if shut & CLOSED != 0 { Shut::Closed } else { Shut::Frozen })
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

    /// Shuts the gate until [`unfreeze`](Self::unfreeze); wait for idleness afterwards.
    pub(crate) fn freeze(&self) {
        self.shut.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Opens the gate, if it is not frozen by another thread, or closed.
    pub(crate) fn unfreeze(&self) {
        self.shut.fetch_sub(1, Ordering::SeqCst);
        self.changed.notify();
    }

    /// Shuts the gate for good. Returns whether it was not closed before.
    pub(crate) fn close(&self) -> bool {
        let before = self.shut.fetch_or(CLOSED, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.changed.notify();
        before & CLOSED == 0
    }

    pub(crate) fn shut(&self) -> Option<Shut> {
        match self.shut.load(Ordering::Acquire) {
            0 => None,
            shut if shut & CLOSED != 0 => Some(Shut::Closed),
            _ => Some(Shut::Frozen),
        }
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
    fn nothing_is_inside_a_frozen_gate() {
        loom::model(|| {
            let state = Arc::new((Gate::default(), Activity::default(), AtomicUsize::new(0)));
            let submitter = {
                let state = Arc::clone(&state);
                thread::spawn(move || {
                    let (gate, activity, inside) = &*state;
                    if gate.enter(activity, 1, Writers::One).is_ok() {
                        inside.store(1, Ordering::Relaxed);
                        inside.store(0, Ordering::Relaxed);
                        gate.leave(activity, 1, Writers::One);
                    }
                })
            };
            let (gate, activity, inside) = &*state;
            gate.freeze();
            gate.wait_until(|| (!activity.is_inside()).then_some(()));
            assert_eq!(inside.load(Ordering::Relaxed), 0);
            gate.unfreeze();
            submitter.join().unwrap();
        });
    }

    #[test]
    fn a_submitter_does_not_sleep_through_the_end_of_a_freeze() {
        loom::model(|| {
            let state = Arc::new((Gate::default(), Activity::default()));
            state.0.freeze();
            let other = {
                let state = Arc::clone(&state);
                thread::spawn(move || state.0.unfreeze())
            };
            let (gate, activity) = &*state;
            while gate.enter(activity, 1, Writers::One).is_err() {
                gate.wait_until(|| gate.shut().is_none().then_some(()));
            }
            gate.leave(activity, 1, Writers::One);
            other.join().unwrap();
            assert!(!activity.is_inside());
        });
    }

    #[test]
    fn an_answer_from_elsewhere_ends_the_wait_for_idleness() {
        loom::model(|| {
            let state = Arc::new((Gate::default(), Activity::default()));
            state.0.enter(&state.1, 1, Writers::One).unwrap();
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

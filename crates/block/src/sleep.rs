//! How threads sleep in this crate, and why none sleeps through what it waits for.
//!
//! An [`Event`] is something that may have become true: a completion has arrived, a queue has room,
//! a device is idle. A thread that waits for it enlists itself, looks again, and sleeps; whoever
//! makes it true looks for enlisted threads afterwards. With a full barrier between write and look
//! on both sides, one of the two sees the other (Dekker's pattern), so no time limit is needed as a
//! safety net. The models at the end of this file check it.
//!
//! A thread that drives queues of its own ([claims](crate::Claim)) does not park while they have
//! requests in flight: it sleeps in the driver, so that its own completions arrive, and an
//! [`Alarm`] reaches it there as well.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use crate::queue::claim;
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering, Parking, fence};

/// What wakes one thread, wherever it sleeps.
#[derive(Debug)]
pub(crate) struct Alarm {
    rung: AtomicBool,
    /// Set while the thread sleeps in a driver.
    driver: Mutex<Option<Waker>>,
    parking: Parking,
}

impl Alarm {
    fn new() -> Self {
        Self { rung: AtomicBool::new(false), driver: Mutex::new(None), parking: Parking::current() }
    }

    /// The alarm of this thread.
    pub(crate) fn current() -> Arc<Self> {
        thread_local! {
            static ALARM: RefCell<Option<Arc<Alarm>>> = const { RefCell::new(None) };
        }
        let known = ALARM.try_with(|alarm| {
            Arc::clone(alarm.borrow_mut().get_or_insert_with(|| Arc::new(Self::new())))
        });
        // A thread that is ending has no alarm of its own any more; a fresh one serves as well.
        known.unwrap_or_else(|_| Arc::new(Self::new()))
    }

    /// Wakes the thread, or makes its next sleep return at once.
    pub(crate) fn ring(&self) {
        self.rung.store(true, Ordering::SeqCst);
        // The thread shows its waker before it looks at `rung` again, under the same lock.
        match &*self.driver.lock() {
            Some(waker) => waker.wake_by_ref(),
            None => self.parking.unpark(),
        }
    }

    /// Sleeps until rung, or until something was reaped. May return early for no reason.
    fn sleep(self: &Arc<Self>) {
        if !claim::step(self, claim::Patience::Unlimited) {
            self.park(None);
        }
    }

    /// Sleeps until rung, or until `deadline`. May return early for no reason.
    pub(crate) fn park(&self, deadline: Option<Instant>) {
        if !self.rung.load(Ordering::SeqCst) {
            self.parking.park(deadline);
        }
        self.heard();
    }

    /// Sleeps in `reap`, from where `waker` gets the thread out.
    pub(crate) fn sleep_in(&self, waker: Waker, reap: impl FnOnce()) {
        *self.driver.lock() = Some(waker);
        if !self.rung.load(Ordering::SeqCst) {
            reap();
        }
        *self.driver.lock() = None;
        self.heard();
    }

    /// What was announced is looked at next; a swap, to see what was done before the ring.
    fn heard(&self) {
        self.rung.swap(false, Ordering::SeqCst);
    }
}

/// Something that threads wait for.
#[derive(Debug)]
pub(crate) struct Event {
    /// Number of `enlisted`, to be read without the lock.
    waiting: AtomicUsize,
    enlisted: Mutex<Vec<Arc<Alarm>>>,
}

impl Default for Event {
    fn default() -> Self {
        Self { waiting: AtomicUsize::new(0), enlisted: Mutex::new(Vec::new()) }
    }
}

impl Event {
    /// Wakes every thread that waits, to look again. Call it after the change that they wait for.
    pub(crate) fn notify(&self) {
        // Pairs with the fence in `wait_until`: the change is visible to a thread that enlists
        // after the load below.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::Relaxed) == 0 {
            return;
        }
        let woken = {
            let mut enlisted = self.enlisted.lock();
            self.waiting.store(0, Ordering::Relaxed);
            std::mem::take(&mut *enlisted)
        };
        for alarm in woken {
            alarm.ring();
        }
    }

    /// Sleeps until `ready` returns something, which it is asked at first and after each
    /// notification.
    pub(crate) fn wait_until<T>(&self, ready: impl FnMut() -> Option<T>) -> T {
        self.wait_with(&Alarm::current(), ready)
    }

    fn wait_with<T>(&self, alarm: &Arc<Alarm>, mut ready: impl FnMut() -> Option<T>) -> T {
        loop {
            if let Some(value) = ready() {
                return value;
            }
            self.enlist(alarm);
            fence(Ordering::SeqCst);
            if let Some(value) = ready() {
                self.delist(alarm);
                return value;
            }
            alarm.sleep();
            self.delist(alarm);
        }
    }

    fn enlist(&self, alarm: &Arc<Alarm>) {
        let mut enlisted = self.enlisted.lock();
        enlisted.push(Arc::clone(alarm));
        self.waiting.store(enlisted.len(), Ordering::Relaxed);
    }

    /// Everybody is woken by each notification, so nothing has to be passed on.
    fn delist(&self, alarm: &Arc<Alarm>) {
        let mut enlisted = self.enlisted.lock();
        enlisted.retain(|other| !Arc::ptr_eq(other, alarm));
        self.waiting.store(enlisted.len(), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn every_waiter_hears_every_change() {
        const ROUNDS: u64 = 2_000;
        let (turn, event) = (AtomicU64::new(0), Event::default());
        std::thread::scope(|scope| {
            for own in 0..3 {
                let (turn, event) = (&turn, &event);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let mine = round * 3 + own;
                        event.wait_until(|| (turn.load(Ordering::Acquire) == mine).then_some(()));
                        turn.store(mine + 1, Ordering::Release);
                        event.notify();
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), 3 * ROUNDS);
        assert!(event.enlisted.lock().is_empty());
    }
}

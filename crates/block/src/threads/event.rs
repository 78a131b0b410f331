//! How threads sleep in this crate, and why none sleeps through its event.
//!
//! An [`Event`] is something that may have become true: a completion has arrived, a queue has room,
//! a device is idle. A thread that waits for it enlists itself, looks again, and sleeps; a thread
//! that makes it true looks for enlisted threads afterwards. With a full barrier between write and
//! look on both sides, one of the two sees the other (Dekker's pattern), so no time limit is needed
//! as a safety net. The models at the end of this file check it.
//!
//! A thread that drives [queues of its own](super::own_queues) does not park while they have
//! requests in flight: it sleeps in the driver, so that its own completions arrive, and an
//! [`Alarm`] reaches it there as well.

use std::sync::Arc;
use std::time::Instant;

use super::alarm::Alarm;
use super::own_queue::WaitLimit;
use super::sync::{AtomicUsize, Mutex, Ordering, fence};
use super::{own_queues, plugged};

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
    pub(crate) fn wait_until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        if let Some(value) = ready() {
            return value;
        }
        let alarm = Alarm::current();
        loop {
            if let Some(value) = self.sleep_until(&alarm, &mut ready) {
                return value;
            }
        }
    }

    /// The same for a caller of this crate: sends what the plugs of the thread hold before it
    /// sleeps, each time, since callbacks that ran meanwhile may have staged more.
    pub(crate) fn wait_unplugged<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        own_queues::defer(plugged::send);
        let value = ready().unwrap_or_else(|| {
            let alarm = Alarm::current();
            loop {
                if let Some(value) = self.sleep_until(&alarm, &mut ready) {
                    return value;
                }
                own_queues::defer(plugged::send);
            }
        });
        own_queues::send_deferred();
        value
    }

    /// The same for a thread that drives no queue. When there is nothing yet, `ready` says until
    /// when to sleep at most.
    pub(crate) fn wait_with_deadline<T>(
        &self,
        mut ready: impl FnMut() -> Result<T, Option<Instant>>,
    ) -> T {
        let alarm = Alarm::current();
        loop {
            self.enlist(&alarm);
            fence(Ordering::SeqCst);
            let result = ready();
            if let Err(deadline) = result {
                alarm.park(deadline);
            }
            self.delist(&alarm);
            if let Ok(value) = result {
                return value;
            }
        }
    }

    /// Sleeps once, unless `ready` returns something before.
    #[cold]
    fn sleep_until<T>(
        &self,
        alarm: &Arc<Alarm>,
        ready: &mut impl FnMut() -> Option<T>,
    ) -> Option<T> {
        self.enlist(alarm);
        fence(Ordering::SeqCst);
        let value = ready();
        if value.is_none() {
            // Not parked while its own queues have something in flight.
            if !own_queues::step(alarm, WaitLimit::Unlimited) {
                alarm.park(None);
            }
        }
        self.delist(alarm);
        value.or_else(ready)
    }

    fn enlist(&self, alarm: &Arc<Alarm>) {
        let mut enlisted = self.enlisted.lock();
        enlisted.push(Arc::clone(alarm));
        self.waiting.store(enlisted.len(), Ordering::Relaxed);
    }

    /// Each notification wakes all, so nothing has to be passed on.
    fn delist(&self, alarm: &Arc<Alarm>) {
        let mut enlisted = self.enlisted.lock();
        enlisted.retain(|other| !Arc::ptr_eq(other, alarm));
        self.waiting.store(enlisted.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
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

#[cfg(all(test, loom))]
mod models {
    use loom::thread;

    use super::*;
    use crate::threads::sync::AtomicBool;

    /// Something becomes true once; a thread waits for it.
    fn becomes_true(event: &Arc<Event>) -> (Arc<AtomicBool>, thread::JoinHandle<()>) {
        let truth = Arc::new(AtomicBool::new(false));
        let maker = {
            let (event, truth) = (Arc::clone(event), Arc::clone(&truth));
            thread::spawn(move || {
                truth.store(true, Ordering::Relaxed);
                event.notify();
            })
        };
        (truth, maker)
    }

    #[test]
    fn a_waiter_does_not_sleep_through_what_it_waits_for() {
        loom::model(|| {
            let event = Arc::new(Event::default());
            let (truth, maker) = becomes_true(&event);
            event.wait_until(|| truth.load(Ordering::Relaxed).then_some(()));
            maker.join().unwrap();
        });
    }

    #[test]
    fn every_waiter_of_an_event_is_woken() {
        // Three threads have too many interleavings for all of them.
        crate::threads::sync::model_with_preemptions(2, || {
            let event = Arc::new(Event::default());
            let (truth, maker) = becomes_true(&event);
            let other = {
                let (event, truth) = (Arc::clone(&event), Arc::clone(&truth));
                thread::spawn(move || {
                    event.wait_until(|| truth.load(Ordering::Relaxed).then_some(()));
                })
            };
            event.wait_until(|| truth.load(Ordering::Relaxed).then_some(()));
            maker.join().unwrap();
            other.join().unwrap();
        });
    }
}

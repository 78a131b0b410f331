//! What wakes one thread, wherever it sleeps.

#[cfg(not(loom))]
use std::cell::RefCell;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::sync::{AtomicBool, Mutex, Ordering, Parking};

/// Wakes one thread: parked, or asleep in a driver.
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
    #[cfg(not(loom))]
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

    /// A fresh one: the threads of a model are one for the operating system.
    #[cfg(loom)]
    pub(crate) fn current() -> Arc<Self> {
        Arc::new(Self::new())
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

    /// The announced work is looked at next; one read-modify-write, to see the stores before the
    /// ring. (A swap would do the same, but loom lets one read a value that was overwritten.)
    fn heard(&self) {
        let _ = self.rung.compare_exchange(true, false, Ordering::SeqCst, Ordering::SeqCst);
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::task::Wake;

    use loom::sync::Notify;
    use loom::thread;

    use super::*;

    struct FakeDriver(Notify);

    impl Wake for FakeDriver {
        fn wake(self: Arc<Self>) {
            self.0.notify();
        }
    }

    #[test]
    fn a_ring_reaches_a_thread_that_sleeps_in_its_driver() {
        loom::model(|| {
            let alarm = Arc::new(Alarm::new());
            let truth = Arc::new(AtomicBool::new(false));
            let ringer = {
                let (alarm, truth) = (Arc::clone(&alarm), Arc::clone(&truth));
                thread::spawn(move || {
                    truth.store(true, Ordering::Relaxed);
                    alarm.ring();
                })
            };
            let driver = Arc::new(FakeDriver(Notify::new()));
            while !truth.load(Ordering::Relaxed) {
                let waker = Waker::from(Arc::clone(&driver));
                alarm.sleep_in(waker, || driver.0.wait());
            }
            ringer.join().unwrap();
        });
    }
}

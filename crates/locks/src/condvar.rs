//! A condition variable for ordered mutexes: that of `parking_lot` knows its own mutex only.
//!
//! A waiter sleeps on an inner mutex and condition variable of `parking_lot`. The contract is that
//! the condition is changed under the ordered mutex and the call to notify comes afterwards, under
//! the mutex or not. Then no wake-up is lost:
//!
//! 1. A waiter has seen, under the ordered mutex, that the condition does not hold. Still under it,
//!    it counts itself and takes the inner mutex; only then it unlocks the ordered one. It gives
//!    the inner one up by falling asleep, which the inner variable makes one step.
//! 2. The notifier makes the condition hold under the ordered mutex. If it does so before 1, the
//!    waiter sees the condition. If it does so after 1, the count that it reads has the waiter in
//!    it: a waiter leaves the count only when it has woken up. The order of memory of the ordered
//!    mutex is enough. The notifier gets the inner mutex only when the waiter sleeps, so its
//!    notification finds the waiter.
//!
//! No deadlock comes of the two mutexes: the inner one is taken under the ordered one, or under
//! none, and a waiter that wakes up gives the inner one up before it takes the ordered one again.
//! Nothing else is taken under the inner one.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

pub use parking_lot::WaitTimeoutResult;

use crate::{MutexGuard, held, order, raw};

/// Wakes threads that wait for what an [`OrderedMutex`](crate::OrderedMutex) protects to change.
///
/// As with any condition variable, the condition is changed under the mutex. Notifying costs one
/// load while no thread waits.
///
/// A thread that waits may hold other locks, of lower rank than the mutex (or of the same rank and
/// lower keys), as the mutex is taken again. Whether a notifier needs one of them is not checked.
#[derive(Debug, Default)]
pub struct Condvar {
    waiters: AtomicUsize,
    asleep: parking_lot::Mutex<()>,
    changed: parking_lot::Condvar,
}

impl Condvar {
    /// Without waiters.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            waiters: AtomicUsize::new(0),
            asleep: parking_lot::Mutex::new(()),
            changed: parking_lot::Condvar::new(),
        }
    }

    /// Unlocks the mutex, sleeps until notified, and locks it again.
    #[track_caller]
    pub fn wait<T: ?Sized, const RANK: u8>(&self, guard: &mut MutexGuard<'_, T, RANK>) {
        self.sleep(guard, |asleep| self.changed.wait(asleep));
    }

    /// As [`wait`](Self::wait), for no longer than `timeout`.
    #[track_caller]
    pub fn wait_for<T: ?Sized, const RANK: u8>(
        &self,
        guard: &mut MutexGuard<'_, T, RANK>,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        self.sleep(guard, |asleep| self.changed.wait_for(asleep, timeout))
    }

    /// Waits as long as `condition` holds.
    #[track_caller]
    pub fn wait_while<T: ?Sized, const RANK: u8>(
        &self,
        guard: &mut MutexGuard<'_, T, RANK>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Wakes one waiter, if there is one.
    pub fn notify_one(&self) {
        if self.waiters.load(Relaxed) > 0 {
            let _all_sleep = self.asleep.lock();
            self.changed.notify_one();
        }
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        if self.waiters.load(Relaxed) > 0 {
            let _all_sleep = self.asleep.lock();
            self.changed.notify_all();
        }
    }

    #[track_caller]
    fn sleep<T: ?Sized, R, const RANK: u8>(
        &self,
        guard: &mut MutexGuard<'_, T, RANK>,
        sleep: impl FnOnce(&mut parking_lot::MutexGuard<'_, ()>) -> R,
    ) -> R {
        let address = raw::address(MutexGuard::mutex(guard));
        // Before anything is unlocked: afterwards a panic could not be had (`relock`).
        let key = order::will_take_again(address);
        self.waiters.fetch_add(1, Relaxed);
        let mut asleep = self.asleep.lock();
        let result = held::with_next_key(key, || {
            MutexGuard::unlocked(guard, || {
                let result = sleep(&mut asleep);
                self.waiters.fetch_sub(1, Relaxed);
                drop(asleep);
                result
            })
        });
        held::taken_here(address);
        result
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::OrderedMutex;

    /// The moment at which a wake-up could be lost: the mutex is free, the waiter not yet asleep.
    #[test]
    fn a_notification_before_the_waiter_sleeps_waits_for_it() {
        let (ready, changed) = (OrderedMutex::<_, 0>::new(false), Condvar::new());
        thread::scope(|scope| {
            let mut guard = ready.lock();
            let result = changed.sleep(&mut guard, |asleep| {
                let notifier = scope.spawn(|| {
                    *ready.lock() = true;
                    changed.notify_one();
                });
                while !*ready.lock() {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(50));
                assert!(!notifier.is_finished());
                changed.changed.wait_for(asleep, Duration::from_secs(60))
            });
            assert!(!result.timed_out());
        });
    }
}

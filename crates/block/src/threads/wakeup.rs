//! Getting a thread out of its sleep in a ring, from threads with and without a ring of their own.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use rustix::event::{EventfdFlags, eventfd};

/// Ends the sleep of one thread by an event descriptor that it, or its ring, listens to.
///
/// Sleeper: says that it sleeps, then looks whether it was woken. Waker: says that it wakes, then
/// looks whether there is a sleeper. All four are sequentially consistent, so one of the two sees
/// the other, and no system call is made for a thread that is awake.
#[derive(Debug)]
pub(crate) struct Wakeup {
    event: OwnedFd,
    asleep: AtomicBool,
    woken: AtomicBool,
}

impl Wakeup {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self { event, asleep: false.into(), woken: false.into() }))
    }

    /// The descriptor becomes readable when a sleeper is woken.
    pub(crate) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Announces a sleep; returns whether to sleep, which is not when a wake-up came before.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        if self.woken.swap(false, Ordering::SeqCst) {
            self.asleep.store(false, Ordering::SeqCst);
            return false;
        }
        true
    }

    /// Ends the sleep. Wake-ups until now are done with: their makers' deeds can be seen.
    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
        self.woken.swap(false, Ordering::SeqCst);
    }

    /// Makes the descriptor unreadable again.
    pub(crate) fn reset(&self) {
        // Would block: it was not readable, which is as good.
        let _ = rustix::io::read(&self.event, &mut [0; 8]);
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            // Cannot fail but when the count is at its largest, and then it is readable.
            let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_before_the_sleep_prevents_it_once() {
        let wakeup = Wakeup::new().unwrap();
        wakeup.wake_by_ref();
        assert!(!wakeup.fall_asleep());
        assert!(wakeup.fall_asleep());
        wakeup.awake();
        assert!(rustix::io::read(&wakeup.event, &mut [0; 8]).is_err(), "no thread slept");
    }

    #[test]
    fn a_sleeper_is_woken_by_one_write() {
        let wakeup = Wakeup::new().unwrap();
        assert!(wakeup.fall_asleep());
        wakeup.wake_by_ref();
        wakeup.wake_by_ref();
        let mut count = [0; 8];
        rustix::io::read(&wakeup.event, &mut count).unwrap();
        assert_eq!(u64::from_ne_bytes(count), 1);
        wakeup.awake();
        assert!(wakeup.fall_asleep(), "both were done with");
    }
}

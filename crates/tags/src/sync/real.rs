//! The standard library's atomics, parking_lot's lock, and parking of threads.

use std::thread::{self, Thread};
use std::time::Instant;

pub(crate) use parking_lot::Mutex;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence};

/// A thread about to sleep. Wake-ups are remembered, and there may be spurious ones.
pub(crate) struct Sleeper(Thread);

impl Sleeper {
    /// The running thread.
    pub(crate) fn current() -> Self {
        Self(thread::current())
    }

    /// What wakes it.
    pub(crate) fn wake(&self) -> Wake {
        Wake(self.0.clone())
    }

    /// Sleeps until woken, or until the deadline if there is one.
    pub(crate) fn sleep(&self, deadline: Option<Instant>) {
        match deadline {
            None => thread::park(),
            Some(deadline) => {
                thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
            }
        }
    }
}

/// Wakes one [`Sleeper`].
pub(crate) struct Wake(Thread);

impl Wake {
    /// Wakes it now, or makes its next sleep return at once.
    pub(crate) fn wake(&self) {
        self.0.unpark();
    }
}

//! Loom's atomics, lock and notification.

use std::sync::Arc;
use std::time::Instant;

use loom::sync::MutexGuard;
use loom::sync::Notify;
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, fence};

/// A lock without poisoning.
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a model that panicked has ended")
    }
}

/// A thread about to sleep. Loom's own parking loses a wake-up that comes while the thread waits
/// for a lock; its notification does not.
pub(crate) struct Sleeper(Arc<Notify>);

impl Sleeper {
    pub(crate) fn current() -> Self {
        Self(Arc::new(Notify::new()))
    }

    pub(crate) fn wake(&self) -> Wake {
        Wake(Arc::clone(&self.0))
    }

    /// Models have no time: only deadlines that have passed are used in them.
    pub(crate) fn sleep(&self, deadline: Option<Instant>) {
        assert!(deadline.is_none(), "a model sleeps without a deadline");
        self.0.wait();
    }
}

/// Wakes one [`Sleeper`].
pub(crate) struct Wake(Arc<Notify>);

impl Wake {
    pub(crate) fn wake(&self) {
        self.0.notify();
    }
}

pub(crate) fn light_barrier() {
    fence(std::sync::atomic::Ordering::SeqCst);
}

pub(crate) fn heavy_barrier() {
    fence(std::sync::atomic::Ordering::SeqCst);
}

pub(crate) fn has_heavy_barrier() -> bool {
    true
}

//! Shuttle's atomics, counted; its lock and parking.

use std::time::Instant;

use shuttle::sync::MutexGuard;
use shuttle::sync::atomic as raw;
pub(crate) use shuttle::sync::atomic::fence;
use shuttle::thread::{self, Thread};
use std::sync::atomic::Ordering;

use super::counts;

/// An atomic whose writes are counted.
macro_rules! counted {
    ($name:ident, $raw:ident, $value:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name(raw::$raw);

        #[allow(dead_code, reason = "not every width needs every operation")]
        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                Self(raw::$raw::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                counts::load();
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                counts::write();
                self.0.store(value, order);
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.swap(value, order)
            }

            pub(crate) fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_add(value, order)
            }

            pub(crate) fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_sub(value, order)
            }

            pub(crate) fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_or(value, order)
            }

            pub(crate) fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                counts::write();
                self.0.fetch_and(value, order)
            }

            pub(crate) fn compare_exchange(
                &self,
                old: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                counts::write();
                self.0.compare_exchange(old, new, success, failure)
            }
        }
    };
}

counted!(AtomicU32, AtomicU32, u32);
counted!(AtomicU64, AtomicU64, u64);
counted!(AtomicUsize, AtomicUsize, usize);

/// A lock without poisoning; taking it counts as a write.
#[derive(Debug)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        counts::write();
        self.0.lock().expect("a model that panicked has ended")
    }
}

/// A thread about to sleep.
pub(crate) struct Sleeper(Thread);

impl Sleeper {
    pub(crate) fn current() -> Self {
        Self(thread::current())
    }

    pub(crate) fn wake(&self) -> Wake {
        Wake(self.0.clone())
    }

    /// Models have no time: only deadlines that have passed are used in them.
    pub(crate) fn sleep(&self, deadline: Option<Instant>) {
        assert!(deadline.is_none(), "a model sleeps without a deadline");
        thread::park();
    }
}

/// Wakes one [`Sleeper`].
pub(crate) struct Wake(Thread);

impl Wake {
    pub(crate) fn wake(&self) {
        self.0.unpark();
    }
}

pub(crate) fn light_barrier() {
    fence(Ordering::SeqCst);
}

pub(crate) fn heavy_barrier() {
    fence(Ordering::SeqCst);
}

pub(crate) fn has_heavy_barrier() -> bool {
    true
}

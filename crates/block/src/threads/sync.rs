//! Atomics, locks and parking, as the real ones or as those of the model checker loom.
//!
//! Only what depends on the order of memory operations is built on these: [`Event`](super::Event)
//! and [`Alarm`](super::Alarm), the gate and the mailboxes of a queue, and the lists of redirected
//! completions. `cargo test` with `--cfg loom` tries every interleaving of their models.

#[cfg(loom)]
mod imp {
    use std::sync::Arc;
    use std::time::Instant;

    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};

    /// Checks a model in all interleavings in which at most so many times a thread is stopped that
    /// could have gone on. Almost all defects need one or two (Musuvathi and Qadeer, 2007).
    #[cfg(test)]
    pub(crate) fn model_with_preemptions(most: usize, model: impl Fn() + Send + Sync + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(most);
        builder.check(model);
    }

    /// A lock without poisoning.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a model that panicked has ended")
        }
    }

    /// A thread that parks itself. Loom's own parking loses a wake-up that comes while the thread
    /// waits for a lock; its notification does not.
    #[derive(Clone, Debug)]
    pub(crate) struct Parking(Arc<loom::sync::Notify>);

    impl Parking {
        pub(crate) fn current() -> Self {
            Self(Arc::new(loom::sync::Notify::new()))
        }

        /// Models have no time.
        pub(crate) fn park(&self, deadline: Option<Instant>) {
            assert!(deadline.is_none(), "a model sleeps without a deadline");
            self.0.wait();
        }

        pub(crate) fn unpark(&self) {
            self.0.notify();
        }
    }
}

#[cfg(not(loom))]
mod imp {
    use std::time::Instant;

    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};

    pub(crate) use parking_lot::Mutex;

    /// A thread that parks itself. A wake-up that comes before is remembered; there may be
    /// spurious ones.
    #[derive(Clone, Debug)]
    pub(crate) struct Parking(std::thread::Thread);

    impl Parking {
        /// The running thread.
        pub(crate) fn current() -> Self {
            Self(std::thread::current())
        }

        /// Sleeps until woken, or until `deadline`; called by the thread itself.
        pub(crate) fn park(&self, deadline: Option<Instant>) {
            match deadline {
                None => std::thread::park(),
                Some(deadline) => {
                    std::thread::park_timeout(deadline.saturating_duration_since(Instant::now()));
                }
            }
        }

        /// Wakes it now, or makes its next sleep return at once.
        pub(crate) fn unpark(&self) {
            self.0.unpark();
        }
    }
}

pub(crate) use imp::*;
pub(crate) use std::sync::atomic::Ordering;

//! The connections that are served at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many there are.
pub(super) struct Crowd {
    served: AtomicUsize,
    processors: usize,
}

/// One of them, as long as it is served.
pub(super) struct Member<'c> {
    crowd: &'c Crowd,
}

impl Crowd {
    /// None yet, with so many processors.
    pub(super) fn of(processors: usize) -> Self {
        Self { served: AtomicUsize::new(0), processors }
    }

    /// Counts one more.
    pub(super) fn join(&self) -> Member<'_> {
        self.served.fetch_add(1, Ordering::Relaxed);
        Member { crowd: self }
    }
}

impl Default for Crowd {
    fn default() -> Self {
        Self::of(thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Member<'_> {
    /// Whether the threads of connections alone can keep all processors busy, so that work is given to
    /// others in vain.
    pub(super) fn is_enough(&self) -> bool {
        self.crowd.served.load(Ordering::Relaxed) >= self.crowd.processors
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.crowd.served.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_processors_are_enough() {
        let crowd = Crowd::of(2);
        let first = crowd.join();
        assert!(!first.is_enough());
        let second = crowd.join();
        assert!(first.is_enough() && second.is_enough());
        drop(first);
        assert!(!second.is_enough());
    }
}

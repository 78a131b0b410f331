//! Threads of connections that may be at work at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many there are.
pub(crate) struct Crowd {
    members: AtomicUsize,
    processors: usize,
}

/// One of them.
pub(crate) struct Member<'c> {
    crowd: &'c Crowd,
}

impl Crowd {
    /// None yet, with so many processors.
    pub(crate) fn of(processors: usize) -> Self {
        Self { members: AtomicUsize::new(0), processors }
    }

    /// Counts one more, until the member is dropped.
    pub(crate) fn join(&self) -> Member<'_> {
        self.members.fetch_add(1, Ordering::Relaxed);
        Member { crowd: self }
    }

    /// Whether all others could keep all processors busy without one of them: none goes to sleep with
    /// its last thread if that one does.
    pub(crate) fn can_spare_one(&self) -> bool {
        self.members.load(Ordering::Relaxed) > self.processors
    }
}

impl Default for Crowd {
    fn default() -> Self {
        Self::of(thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Member<'_> {
    /// Whether they alone can keep all processors busy, so that work is given to others in vain.
    pub(crate) fn is_enough(&self) -> bool {
        self.crowd.members.load(Ordering::Relaxed) >= self.crowd.processors
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.crowd.members.fetch_sub(1, Ordering::Relaxed);
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
        assert!(first.is_enough() && second.is_enough() && !crowd.can_spare_one());
        let third = crowd.join();
        assert!(crowd.can_spare_one());
        drop((first, third));
        assert!(!second.is_enough());
    }
}

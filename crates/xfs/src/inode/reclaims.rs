//! The freeing of files that have no name any more, as far as threads are at it.

use parking_lot::{Condvar, Mutex};

/// Counts it, for those who want the space.
#[derive(Debug, Default)]
pub(crate) struct Reclaims {
    counts: Mutex<Counts>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    begun: u64,
    ended: u64,
}

/// One that is under way.
#[must_use = "it ends when this is dropped"]
pub(crate) struct Reclaiming<'r>(&'r Reclaims);

impl Reclaims {
    /// Begins one.
    pub(crate) fn begin(&self) -> Reclaiming<'_> {
        self.counts.lock().begun += 1;
        Reclaiming(self)
    }

    /// Sleeps until as many have ended as have begun. The caller has no transaction open, no lock of
    /// an inode and nothing plugged: those that it waits for may need them.
    pub(crate) fn wait(&self) {
        let mut counts = self.counts.lock();
        // Not for those that begin meanwhile: there may always be one.
        let begun = counts.begun;
        self.ended.wait_while(&mut counts, |counts| counts.ended < begun);
    }
}

impl Drop for Reclaiming<'_> {
    fn drop(&mut self) {
        self.0.counts.lock().ended += 1;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[test]
    fn what_has_begun_is_waited_for() {
        let (reclaims, has_ended) = (Reclaims::default(), AtomicBool::new(false));
        reclaims.wait();
        let under_way = reclaims.begin();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                reclaims.wait();
                has_ended.load(Ordering::SeqCst)
            });
            // Time in which it could return too early, were it not to wait.
            std::thread::sleep(Duration::from_millis(20));
            has_ended.store(true, Ordering::SeqCst);
            drop(under_way);
            assert!(waits.join().unwrap());
        });
        reclaims.wait();
    }
}

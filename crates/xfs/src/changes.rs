//! Changes under way, and the end of all changes when a volume is closed.
//!
//! What others ask a volume to change passes here before it changes anything, and is under way
//! until it has returned. Work for changes accepted before, as write-back and the freeing of files
//! without names, does not: it goes on until the journal is closed. Nothing waits here but the
//! closing itself, so the order of locks does not matter.

use crate::error::Error;
use crossbeam_utils::CachePadded;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

/// Counts, of which each thread uses one: threads that change things at a time seldom share one.
const COUNTS: usize = 16;

const OPEN: u8 = 0;
const CLOSING: u8 = 1;
const CLOSED: u8 = 2;

/// The changes of a volume.
#[derive(Default)]
pub(crate) struct Changes {
    state: AtomicU8,
    under_way: [CachePadded<AtomicUsize>; COUNTS],
    /// Held by the thread that closes.
    closing: Mutex<()>,
    /// Under which the end of a change is told to it.
    told: Mutex<()>,
    ended: Condvar,
}

/// A change that is under way.
#[derive(Debug)]
#[must_use = "it ends when this is dropped"]
pub(crate) struct Change<'c> {
    changes: &'c Changes,
    count: &'c AtomicUsize,
}

impl Changes {
    /// Begins a change.
    ///
    /// # Errors
    /// The volume was closed, or is being closed.
    pub(crate) fn begin(&self) -> Result<Change<'_>, Error> {
        // Before it counts: what is refused does not hold up the closing.
        self.check_open()?;
        let count = &*self.under_way[own_count()];
        // In one order with the two of `close`: this sees that it is being closed, or is counted.
        count.fetch_add(1, Ordering::SeqCst);
        let change = Change { changes: self, count };
        self.check_open().map(|()| change)
    }

    fn check_open(&self) -> Result<(), Error> {
        match self.state.load(Ordering::SeqCst) {
            OPEN => Ok(()),
            CLOSING => Err(Error::ReadOnly("it is being closed".into())),
            _ => Err(Error::ReadOnly("it was closed".into())),
        }
    }

    /// Refuses changes from now on, waits for those under way, and ends them all by `work`. If that
    /// fails, changes are accepted again. Does nothing once it has succeeded; of several threads
    /// one does it, and the others wait.
    pub(crate) fn close(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let _alone = self.closing.lock();
        if self.state.load(Ordering::SeqCst) == CLOSED {
            return Ok(());
        }
        self.state.store(CLOSING, Ordering::SeqCst);
        // Changes under way may wait for bios that this thread holds back.
        undercroft_block::flush_plugs();
        {
            let mut told = self.told.lock();
            self.ended.wait_while(&mut told, |()| self.are_under_way());
        }
        let result = work();
        let state = if result.is_ok() { CLOSED } else { OPEN };
        self.state.store(state, Ordering::SeqCst);
        result
    }

    fn are_under_way(&self) -> bool {
        self.under_way.iter().any(|count| count.load(Ordering::SeqCst) > 0)
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        if self.changes.state.load(Ordering::SeqCst) == CLOSING {
            drop(self.changes.told.lock());
            self.changes.ended.notify_all();
        }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").field("state", &self.state).finish_non_exhaustive()
    }
}

/// The count of this thread.
fn own_count() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % COUNTS;
    }
    // A thread whose locals are gone changes things in their destructors.
    OWN.try_with(|own| *own).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn an_end_waits_for_changes_and_refuses_others() {
        let (changes, is_under_way) = (Changes::default(), AtomicBool::new(true));
        let change = changes.begin().unwrap();
        std::thread::scope(|scope| {
            let closing = scope.spawn(|| {
                changes.close(|| {
                    assert!(!is_under_way.load(Ordering::SeqCst));
                    Ok(())
                })
            });
            while changes.begin().is_ok() {
                std::thread::yield_now();
            }
            let refused = changes.begin().unwrap_err().to_string();
            assert_eq!(refused, "the volume is read-only: it is being closed");
            is_under_way.store(false, Ordering::SeqCst);
            drop(change);
            closing.join().unwrap().unwrap();
        });
        let refused = changes.begin().unwrap_err().to_string();
        assert_eq!(refused, "the volume is read-only: it was closed");
        changes.close(|| unreachable!("it was closed")).unwrap();
    }

    #[test]
    fn an_end_that_failed_is_none() {
        let changes = Changes::default();
        let failed = changes.close(|| Err(Error::ReadOnly("no".into())));
        assert!(failed.is_err() && changes.begin().is_ok());
        changes.close(|| Ok(())).unwrap();
        assert!(changes.begin().is_err());
    }
}

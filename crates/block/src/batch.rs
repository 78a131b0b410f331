//! Waiting for many bios at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::callback;
use crate::error::BlockError;
use crate::sleep::Event;

/// Counts the outstanding bios of a job and keeps its first error. Clones share the count.
///
/// The error stays: every [`wait`](Self::wait) after it returns it, so that a later success cannot
/// hide that something earlier was lost.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    outstanding: AtomicU64,
    first_error: Mutex<Option<BlockError>>,
    finished: Event,
}

impl Batch {
    /// A batch without bios.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one more bio.
    pub(crate) fn ticket(&self) -> Ticket {
        // Relaxed: whoever waits either made the bio or was told of it by a synchronising way.
        self.shared.outstanding.fetch_add(1, Ordering::Relaxed);
        Ticket { shared: Arc::clone(&self.shared) }
    }

    /// Sleeps until every bio that was put in the batch has completed; flushes the plugs of this
    /// thread first. Returns the first error of any of them, since the batch was made.
    ///
    /// Must not be called in a completion callback.
    pub fn wait(&self) -> Result<(), BlockError> {
        debug_assert!(!callback::is_running(), "a completion callback must not wait");
        // Acquire: what the completing threads did to the bios is visible here.
        let is_done = || (self.shared.outstanding.load(Ordering::Acquire) == 0).then_some(());
        self.shared.finished.wait_unplugged(is_done);
        self.check()
    }

    /// The first error so far, without waiting.
    pub fn check(&self) -> Result<(), BlockError> {
        self.shared.first_error.lock().clone().map_or(Ok(()), Err)
    }

    /// Bios that have not completed.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.shared.outstanding.load(Ordering::Relaxed)
    }
}

/// The place of one bio in a batch.
#[derive(Debug)]
pub(crate) struct Ticket {
    shared: Arc<Shared>,
}

impl Ticket {
    /// Counts the bio as done.
    pub(crate) fn complete(self, result: Result<(), BlockError>) {
        if let Err(error) = result {
            self.shared.first_error.lock().get_or_insert(error);
        }
        if self.shared.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.finished.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Bio;
    use crate::error::Reason;

    #[test]
    fn waits_for_all_and_keeps_the_first_error() {
        let batch = Batch::new();
        let bios: Vec<_> = (0..3).map(|_| Bio::flush().in_batch(&batch)).collect();
        assert_eq!(batch.outstanding(), 3);
        let completing = std::thread::spawn(move || {
            for (number, bio) in bios.into_iter().enumerate() {
                match number {
                    0 => bio.succeed(),
                    1 => bio.fail("first", Reason::ReadOnly),
                    _ => bio.fail("second", Reason::ReadOnly),
                }
            }
        });
        let error = batch.wait().unwrap_err();
        assert_eq!(&*error.device, "first");
        completing.join().unwrap();
        Bio::flush().in_batch(&batch).succeed();
        assert!(batch.wait().is_err(), "the error stays");
    }

    #[test]
    fn an_empty_batch_is_finished() {
        assert!(Batch::new().wait().is_ok());
    }
}

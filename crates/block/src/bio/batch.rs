//! Waiting for many bios at once.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::error::BlockError;
use crate::threads::{Event, role};

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
    failure: Mutex<Failure>,
    finished: Event,
}

/// Called with the first failure of a batch.
pub type FirstErrorHandler = Arc<dyn Fn(&BlockError) + Send + Sync>;

#[derive(Default)]
struct Failure {
    first: Option<BlockError>,
    handler: Option<FirstErrorHandler>,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failure").field(&self.first).finish()
    }
}

impl Batch {
    /// A batch without bios.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `handler` with the first error, before waiters can see it: at once if it is there
    /// already, else in the thread that completes the bio, where it must not wait for another. It
    /// takes the place of the one before.
    pub fn on_first_error(&self, handler: &FirstErrorHandler) {
        let mut failure = self.shared.failure.lock();
        match failure.first.clone() {
            None => failure.handler = Some(Arc::clone(handler)),
            Some(error) => {
                drop(failure);
                handler(&error);
            }
        }
    }

    /// Counts one more bio.
    pub(crate) fn ticket(&self) -> Ticket {
        // Relaxed: a thread that waits made the bio, or was told of it in a synchronising way.
        self.shared.outstanding.fetch_add(1, Ordering::Relaxed);
        Ticket { shared: Arc::clone(&self.shared) }
    }

    /// Sleeps until every bio that was put in the batch has completed; flushes the plugs of this
    /// thread first. Returns the first error of any of them, since the batch was made.
    ///
    /// Must not be called in a completion callback.
    pub fn wait(&self) -> Result<(), BlockError> {
        debug_assert!(!role::is_in_callback(), "a completion callback must not wait");
        // Acquire: the stores of the completing threads to the bios are visible here.
        let is_done = || (self.shared.outstanding.load(Ordering::Acquire) == 0).then_some(());
        self.shared.finished.wait_unplugged(is_done);
        self.check()
    }

    /// The first error so far, without waiting.
    pub fn check(&self) -> Result<(), BlockError> {
        self.shared.failure.lock().first.clone().map_or(Ok(()), Err)
    }

    /// Bios that have not completed.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.shared.outstanding.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Keeps the first error. The handler goes first, without the lock.
    fn fail(&self, error: BlockError) {
        loop {
            let mut failure = self.failure.lock();
            let Some(handler) = failure.handler.take() else {
                failure.first.get_or_insert(error);
                return;
            };
            drop(failure);
            handler(&error);
        }
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
            self.shared.fail(error);
        }
        if self.shared.outstanding.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.finished.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::{Bio, Reason};

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
    fn the_handler_goes_once_and_before_the_error_is_seen() {
        let batch = Batch::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, own) = (Arc::clone(&seen), batch.clone());
        let handler: FirstErrorHandler = Arc::new(move |error| {
            log.lock().push((error.device.to_string(), own.check().is_err()));
        });
        batch.on_first_error(&handler);
        Bio::flush().in_batch(&batch).succeed();
        assert!(seen.lock().is_empty());
        Bio::flush().in_batch(&batch).fail("first", Reason::ReadOnly);
        Bio::flush().in_batch(&batch).fail("second", Reason::ReadOnly);
        assert_eq!(*seen.lock(), [("first".to_owned(), false)]);
        batch.on_first_error(&handler);
        assert_eq!(seen.lock().last().unwrap(), &("first".to_owned(), true), "it comes too late");
    }

    #[test]
    fn an_empty_batch_is_finished() {
        assert!(Batch::new().wait().is_ok());
    }
}

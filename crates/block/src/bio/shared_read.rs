//! A read whose memory several wait for.

use std::sync::OnceLock;
use std::task::{Context, Poll};

use super::error::BlockError;
use super::waiter::Waiter;
use crate::memory::Buffer;

/// A read whose memory several threads and tasks wait for and look at, from
/// [`Waiter::into_shared`].
#[derive(Debug)]
#[must_use = "an ignored read ignores its error"]
pub struct SharedRead {
    waiter: Waiter,
    outcome: OnceLock<Result<Buffer, BlockError>>,
}

impl Waiter {
    /// The same read for several threads and tasks.
    pub fn into_shared(self) -> SharedRead {
        SharedRead { waiter: self, outcome: OnceLock::new() }
    }
}

impl SharedRead {
    /// Whether the read has completed: [`wait`](Self::wait) would not sleep.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.waiter.is_complete()
    }

    /// Ready when the read has completed: as [`Waiter::poll_complete`].
    pub fn poll_complete(&self, context: &mut Context<'_>) -> Poll<()> {
        self.waiter.poll_complete(context)
    }

    /// The bytes, once they have arrived; flushes the plugs of this thread before it sleeps.
    ///
    /// Must not be called in a completion callback.
    ///
    /// # Errors
    /// The read failed: for all who wait.
    pub fn wait(&self) -> Result<&Buffer, &BlockError> {
        if self.outcome.get().is_none() {
            // Before the lock of the outcome: a thread that sleeps there keeps its plugs.
            self.waiter.wait_complete();
        }
        self.outcome.get_or_init(|| self.waiter.take().into_buffer()).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::bio::Bio;
    use crate::units::Sector;

    fn read() -> (Bio, SharedRead) {
        let (bio, waiter) = Bio::read(Sector(0), Buffer::zeroed(512)).waited();
        (bio, waiter.into_shared())
    }

    #[test]
    fn all_who_wait_see_the_bytes() {
        let (bio, shared) = read();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(shared.poll_complete(&mut context), Poll::Pending);
        std::thread::scope(|scope| {
            let waiting = [(); 3].map(|()| scope.spawn(|| shared.wait().unwrap().len()));
            bio.succeed();
            assert_eq!(waiting.map(|thread| thread.join().unwrap()), [512; 3]);
        });
        assert!(shared.is_complete());
        assert_eq!(shared.poll_complete(&mut context), Poll::Ready(()));
    }

    #[test]
    fn all_who_wait_see_the_error() {
        let (bio, shared) = read();
        drop(bio);
        assert!(shared.wait().is_err());
        assert!(shared.wait().is_err() && shared.is_complete());
    }
}

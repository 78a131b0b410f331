//! Operations that a task waits for.

use super::Volume;
use crate::cache::Attempts;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// An operation on a volume as a future. From [`Volume::awaited`].
#[must_use = "a future does nothing before it is awaited"]
pub struct Awaited<F> {
    volume: Arc<Volume>,
    operation: F,
    attempts: Attempts,
}

impl Volume {
    /// A future of the result of `operation`, which reads metadata: while it needs a block that is
    /// not in memory its task waits, not the thread. So one thread has as many lookups in flight as
    /// it likes.
    ///
    /// The operation runs as far as the metadata in memory lets it, and again from its start when
    /// what it lacked has arrived: it should have no effects but its result. One that changes the
    /// volume waits in the thread from its first change on. So does one that reads data of files,
    /// for which there is [`OpenFile::begin_read`](crate::OpenFile::begin_read).
    ///
    /// ```no_run
    /// # use undercroft_xfs::{Error, Volume, ops, units::InodeNumber};
    /// # async fn example(volume: &std::sync::Arc<Volume>, root: InodeNumber) -> Result<(), Error> {
    /// let found = volume.awaited(move |volume| {
    ///     let directory = volume.inode(root)?;
    ///     ops::lookup(volume, &directory.read(), b"etc")
    /// });
    /// println!("{:?}", found.await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn awaited<R, F>(self: &Arc<Self>, operation: F) -> Awaited<F>
    where
        F: FnMut(&Arc<Self>) -> R + Unpin,
    {
        Awaited { volume: Arc::clone(self), operation, attempts: Attempts::default() }
    }
}

impl<R, F: FnMut(&Arc<Volume>) -> R + Unpin> Future for Awaited<F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<R> {
        let Self { volume, operation, attempts } = &mut *self;
        loop {
            ready!(attempts.poll(context));
            if let Some(result) = attempts.attempt(|| operation(volume)) {
                return Poll::Ready(result);
            }
        }
    }
}

impl<F> fmt::Debug for Awaited<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").field("attempts", &self.attempts).finish_non_exhaustive()
    }
}

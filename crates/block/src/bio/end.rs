//! The end of a bio: its receiver is told, once.

use super::body::{Bio, Receiver};
use super::callback::Due;
use super::completion_queue::Arrived;
use super::error::{BlockError, FailedBio, Reason};
use super::join::{Join, rejoined};
use super::operation::Operation;
use super::{callback, completion_queue};

impl Bio {
    /// Ends the bio well.
    pub fn succeed(self) {
        self.finish(Ok(()));
    }

    /// Ends the bio with an error on `device`.
    pub fn fail(self, device: &str, reason: Reason) {
        let error = self.error(device, reason);
        self.finish(Err(error));
    }

    fn error(&self, device: &str, reason: Reason) -> BlockError {
        let (operation, sector, length) = (self.operation(), self.origin(), self.length());
        BlockError::new(FailedBio { device: device.into(), operation, sector, length, reason })
    }

    /// Delivers `result` to the receiver.
    #[inline]
    pub(crate) fn finish(mut self, result: Result<(), BlockError>) {
        match std::mem::replace(&mut self.inner.receiver, Receiver::None) {
            Receiver::None => {
                debug_assert!(result.is_ok(), "an error has no receiver: {result:?}");
            }
            Receiver::Batch(ticket) => {
                // Waiters of the batch find the memory given back.
                drop(self);
                ticket.complete(result);
            }
            Receiver::Queue { number, cookie } => {
                completion_queue::deliver(number, Arrived::new(cookie, self, result));
            }
            Receiver::Callback(receiver) => {
                callback::run(Due::Callback(receiver, self.into_completion(result)));
            }
            Receiver::Interceptor(interceptor) => {
                callback::run(Due::Interceptor(interceptor, self, result));
            }
            Receiver::Part(join) => self.finish_part(&join, result),
        }
    }

    /// Takes the answer of a part to the others; the last one answers the whole.
    fn finish_part(mut self, join: &Join<Self>, result: Result<(), BlockError>) {
        let buffer = self.inner.buffer.take().map(|buffer| (self.origin(), buffer));
        let Some((mut whole, buffers, result)) = join.answered(buffer, result) else { return };
        if whole.operation() == Operation::Read {
            whole.inner.buffer = rejoined(buffers, whole.length());
        }
        // Which part failed is a matter of the devices below, not of the submitter.
        let result = result.map_err(|error| error.at(whole.origin(), whole.length()));
        whole.finish(result);
    }

    /// Takes the receiver away, to be told apart from the memory: as a bio that does the same.
    pub(crate) fn take_receiver(&mut self) -> Self {
        let receiver = std::mem::replace(&mut self.inner.receiver, Receiver::None);
        self.sibling(receiver)
    }

    /// Gives the receiver back that [`take_receiver`](Self::take_receiver) took.
    pub(crate) fn give_receiver(&mut self, mut other: Self) {
        self.inner.receiver = std::mem::replace(&mut other.inner.receiver, Receiver::None);
    }

    #[cold]
    fn abandon(&mut self) {
        let receiver = std::mem::replace(&mut self.inner.receiver, Receiver::None);
        let mut rest = self.sibling(receiver);
        rest.inner.buffer = self.inner.buffer.take();
        rest.fail("no device", Reason::Abandoned);
    }
}

impl Drop for Bio {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.inner.receiver, Receiver::None) {
            self.abandon();
        }
    }
}

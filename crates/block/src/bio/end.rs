//! The end of a bio: its receiver is told, once.

use super::{Bio, Operation, Receiver};
use crate::buffer::Buffer;
use crate::callback::{self, Due};
use crate::completion_queue::{self, Arrived};
use crate::error::{BlockError, FailedBio, Reason};
use crate::sector::Sector;

/// How a bio ended.
#[derive(Debug)]
pub struct Completion {
    /// What the bio did.
    pub operation: Operation,
    /// Its first sector, as the submitter gave it.
    pub sector: Sector,
    /// Whether it succeeded. After a failed write the sectors hold old, new or mixed contents.
    pub result: Result<(), BlockError>,
    /// The buffer of a read, filled if the read succeeded, unspecified contents if not. None after
    /// [`Reason::TimedOut`]: the driver may still write it.
    pub buffer: Option<Buffer>,
}

impl Completion {
    /// The filled buffer of a successful read (empty for other operations), or the error.
    #[inline]
    pub fn into_buffer(self) -> Result<Buffer, BlockError> {
        match (self.result, self.buffer) {
            (Err(error), _) => Err(error),
            (Ok(()), Some(buffer)) => Ok(buffer),
            (Ok(()), None) => Ok(Buffer::zeroed(0)),
        }
    }
}

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

    /// What a receiver is told.
    pub(crate) fn into_completion(mut self, result: Result<(), BlockError>) -> Completion {
        let buffer = self.inner.buffer.take();
        Completion { operation: self.operation(), sector: self.origin(), result, buffer }
    }

    /// Delivers `result` to the receiver.
    #[inline]
    pub(crate) fn finish(mut self, result: Result<(), BlockError>) {
        match std::mem::replace(&mut self.inner.receiver, Receiver::Nobody) {
            Receiver::Nobody => {
                debug_assert!(result.is_ok(), "an error reached nobody: {result:?}");
            }
            Receiver::Batch(ticket) => {
                // Whoever waits for the batch finds the memory given back.
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
            Receiver::Part(join) => join.answered(self, result),
        }
    }

    /// Takes the receiver away, to be told apart from the memory: as a bio that does the same.
    pub(crate) fn take_receiver(&mut self) -> Self {
        let receiver = std::mem::replace(&mut self.inner.receiver, Receiver::Nobody);
        self.sibling(receiver)
    }

    /// Gives the receiver back that [`take_receiver`](Self::take_receiver) took.
    pub(crate) fn give_receiver(&mut self, mut other: Self) {
        self.inner.receiver = std::mem::replace(&mut other.inner.receiver, Receiver::Nobody);
    }

    #[cold]
    fn abandon(&mut self) {
        let receiver = std::mem::replace(&mut self.inner.receiver, Receiver::Nobody);
        let mut rest = self.sibling(receiver);
        rest.inner.buffer = self.inner.buffer.take();
        rest.fail("no device", Reason::Abandoned);
    }
}

impl Drop for Bio {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.inner.receiver, Receiver::Nobody) {
            self.abandon();
        }
    }
}

//! The answer to a ticket, and its receivers.

use crate::error::Error;
use crate::units::InodeNumber;
use std::sync::Arc;
use std::task::Waker;

/// The answer to a ticket.
pub(crate) type Answer = Result<(), Refusal>;

/// The reason why the changes of a ticket are not durable.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// Nothing can be made durable any more.
    Poisoned(Arc<str>),
    /// The volume is not open for changes.
    ReadOnly(Arc<str>),
    /// Data of this file was not written.
    File(InodeNumber, Arc<str>),
}

impl Refusal {
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Poisoned(reason) => Error::Poisoned(reason.to_string()),
            Self::ReadOnly(reason) => Error::ReadOnly(reason.to_string()),
            Self::File(inode, reason) => Error::NotWritten { inode, what: reason.to_string() },
        }
    }
}

/// A receiver that is told of an answer by a call.
pub(super) enum Receiver {
    Task(Waker),
    Callback(Box<dyn FnOnce(Result<(), Error>) + Send>),
}

impl Receiver {
    pub(super) fn tell(self, answer: &Answer) {
        undercroft_locks::assert_unlocked("the callback of a ticket");
        match self {
            Self::Task(waker) => waker.wake(),
            Self::Callback(callback) => callback(to_result(answer)),
        }
    }
}

/// The answer as it is handed out.
pub(super) fn to_result(answer: &Answer) -> Result<(), Error> {
    answer.clone().map_err(Refusal::into_error)
}

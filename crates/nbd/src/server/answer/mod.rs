//! Answers: from the outcome of a request to the bytes in the socket.

mod outbox;
mod queue;
mod reply;

pub(crate) use outbox::Outbox;
pub(crate) use queue::{Answers, Data, Outgoing};
pub(crate) use reply::Asked;

//! How a request failed.

use crate::bio::Reason;

/// How far a request came, and what stopped it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Bytes transferred before, from the start of the request on.
    pub done: u64,
    /// What stopped it.
    pub reason: Reason,
}

impl<E: Into<Reason>> From<E> for Failure {
    /// A failure before the first byte.
    fn from(error: E) -> Self {
        Self { done: 0, reason: error.into() }
    }
}

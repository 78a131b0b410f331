//! Requests that a driver hands back.

use crate::request::{Failure, Request};

/// The requests that ended, with how.
#[derive(Debug, Default)]
pub struct Completions {
    /// Each with [how](Request::note).
    pub(crate) ended: Vec<Request>,
}

impl Completions {
    /// Hands `request` back. Its bios are answered when the driver has returned to its caller.
    pub fn push(&mut self, mut request: Request, result: Result<(), Failure>) {
        request.note(result);
        self.ended.push(request);
    }

    /// Requests handed back so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ended.len()
    }

    /// Whether none was handed back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }
}

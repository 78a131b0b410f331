//! The requests that one caller hands to a queue, or a queue to a driver.

use std::collections::VecDeque;

use crate::request::Request;

/// Requests in the order in which they are to start.
#[derive(Debug, Default)]
pub struct RequestList {
    requests: VecDeque<Request>,
}

impl RequestList {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A list of one.
    pub(crate) fn of(request: Request) -> Self {
        Self { requests: VecDeque::from([request]) }
    }

    /// Takes the first request.
    pub fn pop(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Puts a request back that could not be started after all.
    pub fn push_front(&mut self, request: Request) {
        self.requests.push_front(request);
    }

    /// Appends a request.
    pub(crate) fn push(&mut self, request: Request) {
        self.requests.push_back(request);
    }

    /// The first request.
    #[must_use]
    pub fn first(&self) -> Option<&Request> {
        self.requests.front()
    }

    /// The last request, to merge with.
    pub(crate) fn last_mut(&mut self) -> Option<&mut Request> {
        self.requests.back_mut()
    }

    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The requests in order.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter()
    }
}

impl Extend<Request> for RequestList {
    fn extend<I: IntoIterator<Item = Request>>(&mut self, requests: I) {
        self.requests.extend(requests);
    }
}

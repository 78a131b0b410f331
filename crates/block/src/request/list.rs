//! The requests that one caller hands to a queue, or a queue to a driver.

use std::collections::VecDeque;

use super::body::Request;
use crate::affinity::Stamp;

/// Requests in the order in which they are to start.
#[derive(Debug, Default)]
pub struct RequestList {
    requests: VecDeque<Request>,
    /// When they were submitted, if the maker of the list has looked.
    pub(crate) stamp: Option<Stamp>,
}

impl RequestList {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A list of one.
    pub(crate) fn of(request: Request) -> Self {
        Self { requests: VecDeque::from([request]), stamp: None }
    }

    /// Takes the first request.
    pub fn pop(&mut self) -> Option<Request> {
        self.requests.pop_front()
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

    /// The requests in order, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Request> {
        self.requests.iter_mut()
    }

    /// Moves all of `other` to the end.
    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.requests.is_empty() {
            std::mem::swap(self, other);
        } else {
            self.requests.append(&mut other.requests);
        }
    }

    /// Cuts off the requests from `index` on.
    pub(crate) fn split_off(&mut self, index: usize) -> Self {
        if index == self.requests.len() {
            return Self::new();
        }
        Self { requests: self.requests.split_off(index), stamp: self.stamp }
    }

    /// Takes out the requests that `keep` refuses, in order; asked for each once, in order.
    pub(crate) fn keep(
        &mut self,
        mut keep: impl FnMut(&mut Request) -> bool,
        mut refused: impl FnMut(Request),
    ) {
        let mut index = 0;
        while index < self.requests.len() {
            if keep(&mut self.requests[index]) {
                index += 1;
            } else if let Some(request) = self.requests.remove(index) {
                refused(request);
            }
        }
    }

    /// The requests in order.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter()
    }
}

impl IntoIterator for RequestList {
    type Item = Request;
    type IntoIter = std::collections::vec_deque::IntoIter<Request>;

    fn into_iter(self) -> Self::IntoIter {
        self.requests.into_iter()
    }
}

impl Extend<Request> for RequestList {
    fn extend<I: IntoIterator<Item = Request>>(&mut self, requests: I) {
        self.requests.extend(requests);
    }
}

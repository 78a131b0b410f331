//! What the requests of a connection take, and when it may take more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

use super::poll::Wake;

/// Counted for each request beside its data: headers, the bio, places in lists.
const OVERHEAD: usize = 512;

/// Memory and requests of a connection.
pub(crate) struct Quota {
    /// Bytes of requests that are not answered.
    bytes: AtomicUsize,
    /// Requests that the device has.
    requests: AtomicUsize,
    limit: usize,
    /// Whether the thread of the connection waits for bytes, or for the last request.
    waiting: AtomicBool,
}

impl Quota {
    pub(crate) fn new(limit: usize) -> Self {
        let (bytes, requests) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { bytes, requests, limit, waiting: AtomicBool::new(false) }
    }

    /// Takes the memory for a request with so many bytes of data. The only request of a connection
    /// always gets it. For the thread of the connection.
    pub(crate) fn take(&self, data: usize) -> Option<usize> {
        let wanted = data.saturating_add(OVERHEAD);
        if self.has_room(wanted) {
            self.bytes.fetch_add(wanted, Ordering::Relaxed);
            return Some(wanted);
        }
        None
    }

    fn has_room(&self, wanted: usize) -> bool {
        let taken = self.bytes.load(Ordering::SeqCst);
        taken == 0 || taken.saturating_add(wanted) <= self.limit
    }

    /// Whether a request with so many bytes of data has to wait; if so, the thread is woken when
    /// some are given back.
    pub(crate) fn must_wait(&self, data: usize) -> bool {
        self.expect();
        !self.has_room(data.saturating_add(OVERHEAD))
    }

    /// Has the thread woken by what ends from now on.
    pub(crate) fn expect(&self) {
        self.waiting.store(true, Ordering::SeqCst);
        // Pairs with the fence in `tell`: either the end is seen now, or it rings.
        fence(Ordering::SeqCst);
    }

    /// Gives memory back.
    pub(crate) fn give(&self, bytes: usize, wake: &Wake) {
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        self.tell(wake);
    }

    /// A request goes to the device.
    pub(crate) fn begin(&self) {
        self.requests.fetch_add(1, Ordering::SeqCst);
    }

    /// A request has come back, and its answer is where the thread of the connection sees it.
    pub(crate) fn end(&self, wake: &Wake) {
        if self.requests.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.tell(wake);
        }
    }

    /// Requests that the device has.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn tell(&self, wake: &Wake) {
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) && self.waiting.swap(false, Ordering::SeqCst) {
            wake.ring();
        }
    }
}

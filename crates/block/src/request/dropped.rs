//! Requests that are dropped unanswered: how one finds back to its leaf.
//!
//! A reference to the leaf would cost every request a counter that all threads share. So a request
//! has the number of its leaf, and only one that is dropped unanswered looks it up here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use super::body::Request;
use crate::memory::Recycled;

/// A leaf, for requests that come back by being dropped.
pub(crate) trait Reclaim: Send + Sync {
    /// Takes a request that was dropped unanswered; answers it later, in another thread.
    fn take_back(&self, request: Request);

    /// Ends a use of the leaf by a thread of its driver.
    fn leave(self: Arc<Self>);
}

/// All leaves, by number.
static LEAVES: RwLock<Option<HashMap<u64, Weak<dyn Reclaim>>>> = RwLock::new(None);

/// A number for a leaf that is to be made; never 0.
pub(crate) fn number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Makes a leaf known.
pub(crate) fn register(number: u64, leaf: Weak<dyn Reclaim>) {
    LEAVES.write().get_or_insert_default().insert(number, leaf);
}

/// Forgets a leaf.
pub(crate) fn forget(number: u64) {
    if let Some(leaves) = &mut *LEAVES.write() {
        leaves.remove(&number);
    }
}

/// Hands `request`, which was dropped unanswered, to its leaf. If that is gone, an
/// answer would have no name.
fn take_back(mut request: Request) {
    let number = std::mem::take(&mut request.inner.leaf);
    let leaf = LEAVES.read().as_ref().and_then(|leaves| leaves.get(&number)?.upgrade());
    match leaf {
        Some(leaf) => {
            leaf.take_back(request);
            leaf.leave();
        }
        None => request.take_bios().for_each(drop),
    }
}

/// Drops `leaf` in a thread of its driver. The last handle ends the driver, which may wait for its
/// threads, this one among them: that is left to a thread of its own.
pub(crate) fn leave<T: Send + Sync + 'static>(leaf: Arc<T>) {
    if let Some(last) = Arc::into_inner(leaf) {
        // If the system refuses a thread, the closure is dropped here: that is all one can do.
        let _ = std::thread::Builder::new().name("block-end".into()).spawn(move || drop(last));
    }
}

impl Drop for Request {
    #[inline]
    fn drop(&mut self) {
        if self.inner.first.is_some() {
            self.is_lost();
        }
    }
}

impl Request {
    /// The request is dropped unanswered.
    #[cold]
    #[inline(never)]
    fn is_lost(&mut self) {
        let known = self.inner.leaf != 0;
        debug_assert!(known || std::thread::panicking(), "a request was dropped unanswered");
        if known {
            let inner = std::mem::replace(&mut self.inner, Recycled::cleared());
            take_back(Self { inner });
        }
    }
}

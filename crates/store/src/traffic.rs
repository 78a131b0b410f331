//! What went to and from stores, counted.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The requests and bytes of one store of a command.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) gets: AtomicU64,
    pub(crate) puts: AtomicU64,
    pub(crate) others: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) bytes_received: AtomicU64,
    pub(crate) bytes_sent: AtomicU64,
    pub(crate) cached: AtomicU64,
}

/// What went to and from a store. Requests that were tried again count each time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The store, by what was opened first.
    pub store: String,
    /// Requests for an object or a part of it.
    pub gets: u64,
    /// Objects that were written.
    pub puts: u64,
    /// All other requests: listings, deletions, what is asked of an object without its bytes.
    pub others: u64,
    /// Those of all of them that did not end well, of which most are tried again.
    pub failed: u64,
    /// Bytes of objects that came.
    pub bytes_received: u64,
    /// Bytes of objects that went.
    pub bytes_sent: u64,
    /// Bytes that came from the cache in a directory instead.
    pub bytes_cached: u64,
}

static ALL: Mutex<Vec<(String, Arc<Counts>)>> = Mutex::new(Vec::new());

/// Counts of one more store.
pub(crate) fn counts_of(store: &str) -> Arc<Counts> {
    let counts = Arc::new(Counts::default());
    ALL.lock().push((store.to_owned(), Arc::clone(&counts)));
    counts
}

/// What went to and from all stores that this process has opened, in the order in which it did.
#[must_use]
pub fn traffic() -> Vec<Traffic> {
    let all = ALL.lock();
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let traffic = all.iter().map(|(store, counts)| Traffic {
        store: store.clone(),
        gets: read(&counts.gets),
        puts: read(&counts.puts),
        others: read(&counts.others),
        failed: read(&counts.failed),
        bytes_received: read(&counts.bytes_received),
        bytes_sent: read(&counts.bytes_sent),
        bytes_cached: read(&counts.cached),
    });
    traffic.collect()
}

impl Counts {
    pub(crate) fn add(count: &AtomicU64, amount: u64) {
        count.fetch_add(amount, Ordering::Relaxed);
    }
}

//! Requests that a device holds back to let them leave together: the device-side plug.
//!
//! The first request plugs the device; a threshold, a delay or a submitter that cannot wait unplugs it.
//! Unplugging a stacked device asks every leaf below it, most of which are not plugged. So a flag
//! tells, without the lock, whether there is anything to do. A race is harmless: the thread
//! that plugs the device at that moment sees to it that it is unplugged, at the latest by the delay.

use std::ops::DerefMut;
use std::time::{Duration, Instant};

use crate::queue::options::UnplugMode;
use crate::request::RequestList;
use crate::threads::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// The requests that one leaf holds back.
#[derive(Debug)]
pub(crate) struct StagedRequests {
    staged: Mutex<RequestList>,
    /// Whether `staged` holds any; changed under its lock.
    plugged: AtomicBool,
    threshold: usize,
    delay: Duration,
    mode: UnplugMode,
    /// Times that the lock was taken; written under it.
    locks: AtomicU64,
}

/// What follows from staging requests.
#[derive(Debug)]
pub(crate) enum Staged {
    /// They wait with others.
    Waiting,
    /// They plugged the device: it has to be unplugged at this time.
    Plugged(Instant),
    /// The threshold is reached: all that waited, to be started now.
    Full(RequestList),
}

impl StagedRequests {
    pub(crate) fn new(threshold: usize, delay: Duration, mode: UnplugMode) -> Self {
        Self {
            staged: Mutex::new(RequestList::new()),
            plugged: AtomicBool::new(false),
            threshold,
            delay,
            mode,
            locks: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> impl DerefMut<Target = RequestList> {
        let staged = self.staged.lock();
        self.locks.store(self.locks.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        staged
    }

    /// Times that the lock was taken so far.
    pub(crate) fn locks(&self) -> u64 {
        self.locks.load(Ordering::Relaxed)
    }

    /// Adds `requests`, leaving the list empty. `urgent` ones are not held back, nor is what waits.
    pub(crate) fn add(&self, requests: &mut RequestList, urgent: bool) -> Staged {
        let mut staged = self.lock();
        let first = staged.is_empty();
        // Submitted when they leave: until then the device has not seen them.
        requests.stamp = None;
        staged.append(requests);
        if urgent || staged.len() >= self.threshold {
            self.plugged.store(false, Ordering::Relaxed);
            return Staged::Full(std::mem::take(&mut *staged));
        }
        self.plugged.store(true, Ordering::Relaxed);
        if first { Staged::Plugged(Instant::now() + self.delay) } else { Staged::Waiting }
    }

    /// Takes out the requests held back, if there are any.
    pub(crate) fn unplug(&self) -> Option<RequestList> {
        // Relaxed: a thread that staged a request sees its own write; for others the order is not
        // defined.
        if self.mode == UnplugMode::TestFirst && !self.plugged.load(Ordering::Relaxed) {
            return None;
        }
        let mut staged = self.lock();
        self.plugged.store(false, Ordering::Relaxed);
        if staged.is_empty() { None } else { Some(std::mem::take(&mut *staged)) }
    }
}

#[cfg(all(test, loom))]
mod models {
    use std::sync::Arc;

    use loom::thread;

    use super::*;
    use crate::bio::Bio;
    use crate::request::Request;

    /// Ends the staged requests; returns their number.
    fn end(requests: Option<RequestList>) -> usize {
        requests.into_iter().flatten().map(Request::complete).count()
    }

    #[test]
    fn the_thread_that_plugs_unplugs_and_each_request_leaves_once() {
        loom::model(|| {
            let area = Arc::new(StagedRequests::new(4, Duration::ZERO, UnplugMode::TestFirst));
            let other = {
                let area = Arc::clone(&area);
                thread::spawn(move || {
                    // The unplug of another thread, which may come at any time.
                    end(area.unplug())
                })
            };
            let mut requests = RequestList::of(Request::new(Bio::flush()));
            assert!(matches!(area.add(&mut requests, false), Staged::Plugged(_)));
            let own = end(area.unplug());
            assert_eq!(own + other.join().unwrap(), 1);
            assert!(area.unplug().is_none());
        });
    }
}

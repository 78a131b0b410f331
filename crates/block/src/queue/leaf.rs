//! A device that does I/O itself: a queue over a driver.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use super::hardware::HardwareQueue;
use super::options::{Drive, OverlapOrder, QueueOptions};
use super::order::OverlapTracker;
use super::{RequestList, RequestQueue, worker};
use crate::callback;
use crate::device::{BlockDevice, Layer, Limits};
use crate::driver::{Completions, Driver, Failure};
use crate::drivers::OpenError;
use crate::request::Request;
use crate::sector::Sector;
use crate::statistics::{Counters, Statistics};

/// A device over one driver: what takes requests and answers them.
///
/// Dropping it answers everything submitted and stops its threads; it does not flush.
pub struct Leaf<D: Driver> {
    shared: Arc<Shared<D>>,
    /// The same, as the layers above know it.
    queue: Arc<dyn RequestQueue>,
    threads: Vec<JoinHandle<()>>,
}

/// What a leaf, its threads and the plugs of its users share.
pub(super) struct Shared<D> {
    pub(super) driver: Arc<D>,
    pub(super) options: QueueOptions,
    pub(super) hardware: HardwareQueue,
    order: Mutex<OverlapTracker>,
    counters: Counters,
    /// Requests submitted and not answered.
    outstanding: Mutex<usize>,
    idle: Condvar,
}

impl<D: Driver> Leaf<D> {
    /// A device over `driver`.
    ///
    /// # Errors
    /// When a thread or a driver queue cannot be started.
    pub fn start(driver: D, options: QueueOptions) -> Result<Self, OpenError> {
        let shared = Arc::new(Shared {
            driver: Arc::new(driver),
            hardware: HardwareQueue::new(options.queue_bytes),
            options,
            order: Mutex::default(),
            counters: Counters::default(),
            outstanding: Mutex::default(),
            idle: Condvar::new(),
        });
        let queue = Arc::clone(&shared) as _;
        // Made before its threads, so that one that cannot start stops the others.
        let mut leaf = Self { shared, queue, threads: Vec::new() };
        if let Drive::Threads(threads) = leaf.shared.options.drive {
            for _ in 0..threads.max(1) {
                leaf.threads.push(worker::start(&leaf.shared)?);
            }
        }
        Ok(leaf)
    }

    /// The driver.
    #[must_use]
    pub fn driver(&self) -> &D {
        &self.shared.driver
    }
}

impl<D: Driver> BlockDevice for Leaf<D> {
    fn name(&self) -> &str {
        self.shared.driver.name()
    }

    fn capacity(&self) -> Sector {
        self.shared.driver.capacity()
    }

    fn limits(&self) -> Limits {
        self.shared.driver.limits()
    }

    fn is_read_only(&self) -> bool {
        self.shared.driver.is_read_only()
    }

    fn layer(&self) -> Layer<'_> {
        Layer::Leaf(&self.queue)
    }
}

impl<D: Driver> Drop for Leaf<D> {
    fn drop(&mut self) {
        self.shared.hardware.close();
        for thread in std::mem::take(&mut self.threads) {
            // The last handle may be dropped by a callback in such a thread; it ends by itself.
            if thread.thread().id() != std::thread::current().id() {
                // They catch the panics of callbacks, so this is only an error of our own.
                let joined = thread.join();
                debug_assert!(joined.is_ok(), "a thread of {} panicked", self.name());
            }
        }
    }
}

impl<D: Driver> RequestQueue for Shared<D> {
    fn name(&self) -> &str {
        self.driver.name()
    }

    fn limits(&self) -> Limits {
        self.driver.limits()
    }

    fn submit(&self, requests: &mut RequestList) {
        self.counters.count(requests.iter());
        let mut ready = RequestList::new();
        let mut completions = Completions::default();
        while let Some(request) = requests.pop() {
            let Some(request) = request.admit(&*self.driver) else { continue };
            *self.outstanding.lock() += 1;
            let Some(mut request) = self.enter(request) else { continue };
            let here = request.is_immediate() || self.options.drive == Drive::Inline;
            match here.then(|| self.driver.execute(&mut request)).flatten() {
                Some(result) => {
                    completions.push(request, result);
                    self.finish(&mut completions);
                }
                None => ready.push(request),
            }
        }
        if !ready.is_empty() {
            self.hardware.push(&mut ready, may_wait());
        }
    }

    fn statistics(&self) -> Statistics {
        self.counters.snapshot()
    }

    fn drain(&self) {
        let mut outstanding = self.outstanding.lock();
        while *outstanding > 0 {
            self.idle.wait(&mut outstanding);
        }
    }

    fn unplug(&self) {}
}

/// Whether this thread may wait for room in a queue: not if it may have to make the room itself.
fn may_wait() -> bool {
    !worker::is_current() && !callback::is_running()
}

impl<D: Driver> Shared<D> {
    /// Gives `request` back if no other has to be finished before it.
    fn enter(&self, request: Request) -> Option<Request> {
        if self.options.drive == Drive::Inline || self.options.order != OverlapOrder::Kept {
            return Some(request);
        }
        self.order.lock().enter(request)
    }

    /// Answers the requests in `completions` and starts those that waited for them.
    pub(super) fn finish(&self, completions: &mut Completions) {
        let mut released = Vec::new();
        let count = completions.len();
        if self.options.drive != Drive::Inline && self.options.order == OverlapOrder::Kept {
            let mut order = self.order.lock();
            for (request, _) in &completions.ended {
                order.leave(request, &mut released);
            }
        }
        if !released.is_empty() {
            let mut ready = RequestList::new();
            ready.extend(released);
            self.hardware.push(&mut ready, false);
        }
        let mut panic = None;
        for (request, result) in completions.ended.drain(..) {
            let answered = catch_unwind(AssertUnwindSafe(|| self.answer(request, result)));
            panic = panic.or(answered.err());
        }
        let mut outstanding = self.outstanding.lock();
        *outstanding -= count;
        if *outstanding == 0 {
            self.idle.notify_all();
        }
        drop(outstanding);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn answer(&self, request: Request, result: Result<(), Failure>) {
        match result {
            Ok(()) => request.complete(),
            Err(failure) => request.fail(self.driver.name(), failure.done, &failure.reason),
        }
    }
}

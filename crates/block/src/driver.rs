//! What a leaf device is made of: a driver that moves bytes, one driver queue at a time.
//!
//! ```text
//! queue layer:  requests with tags --start-->  driver queue  --completions-->  bios answered
//!                                   <--reap--
//! ```
//!
//! A driver knows nothing of bios, order, tags in use, waiting or threads. It is handed requests
//! that lie inside the device, are aligned as it asked, and do not conflict with each other, and
//! it gives each back once, in [`Completions`], with how it ended. A driver queue is used by the
//! one thread that opened it; the requests may go to threads of the driver, which hand them in
//! through a [`Completer`]. A request that is dropped instead fails with
//! [`Reason::Dropped`]. `examples/driver.rs` is a whole driver.
//!
//! A driver that has a request longer than the device allows
//! ([`QueueOptions::time_limit`](crate::QueueOptions::time_limit)) is asked to
//! [`cancel`](DriverQueue::cancel) it and may keep it as long as it likes: tag and memory stay the
//! request's until it is handed in or dropped, and how it ended is not heard any more.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use crate::device::Limits;
use crate::drivers::{Bell, OpenError};
use crate::error::Reason;
use crate::queue::{Completer, RequestList};
use crate::request::Request;
use crate::sector::Sector;

/// What moves the bytes of a leaf device.
pub trait Driver: Send + Sync + 'static {
    /// What one thread drives.
    type Queue: DriverQueue;

    /// How messages call the device.
    fn name(&self) -> &str;

    /// Number of sectors.
    fn capacity(&self) -> Sector;

    /// What requests must look like.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// Whether operations that modify are refused; always the same.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Gives the driver a way to hand in what ended from threads of its own. Called once, before any
    /// queue is opened; drivers without such threads have no use for it.
    fn attach(&self, completer: Completer) {
        drop(completer);
    }

    /// Opens a queue in the thread that will drive it.
    ///
    /// # Errors
    /// When the operating system refuses what the queue needs.
    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<Self::Queue, OpenError>;

    /// Does `request` in the calling thread, whichever it is, and says how that ended. `None`,
    /// without having touched anything, if the driver cannot; it is asked for requests whose
    /// submitter does nothing but wait for them, which saves two changes of threads.
    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        let _ = request;
        None
    }
}

/// What a driver queue is opened for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueContext {
    /// Number of the hardware queue, from 0. Several threads may drive one.
    pub index: usize,
    /// Tags of the requests given to it are below this, so a table by tag needs as many places.
    pub depth: u32,
}

/// One stream of requests to a device, driven by one thread.
pub trait DriverQueue {
    /// Most requests that a thread takes at a time: what one call of [`start`](Self::start) can
    /// use. 1 leaves the others to further threads of the queue.
    const BATCH: usize = 32;

    /// Takes requests from the front of `requests`, as many as there is room for, and starts them.
    /// What ends meanwhile is put in `completions`; what is left in `requests` is offered again
    /// when something was reaped.
    ///
    /// What was started may go out with the next [`reap`](Self::reap) only, so that one system
    /// call does both: the thread calls that next, before it does anything else.
    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions);

    /// Puts requests that ended into `completions`, waiting as `wait` says when there is none.
    /// May return without any, for instance after [`waker`](Self::waker) was used.
    ///
    /// # Errors
    /// When the queue has broken; everything in it is in `completions` then, as failed.
    fn reap(&mut self, completions: &mut Completions, wait: Wait) -> io::Result<()>;

    /// Number of requests started and not yet put in completions.
    fn in_flight(&self) -> usize;

    /// Ends the waiting of [`reap`](Self::reap), now or, if it does not wait, the next time that it
    /// would. Used from other threads.
    fn waker(&self) -> Waker;

    /// What queues of other threads [`ring`](Self::ring) to end the waiting of
    /// [`reap`](Self::reap) here, if messages between queues are cheaper than the waker.
    fn bell(&self) -> Option<Bell> {
        None
    }

    /// For a thread that is going to sleep for several queues at once, of which this one has
    /// requests in flight: sees to it that `event`, an event descriptor, becomes readable when one of
    /// them ends, until [`ignore`](Self::ignore). Returns when the thread has to look anyway: at
    /// once, if something has ended or nothing makes the descriptor readable.
    fn expect(&mut self, event: BorrowedFd<'_>) -> Option<Instant> {
        let _ = event;
        Some(Instant::now())
    }

    /// Leaves the descriptor of [`expect`](Self::expect) alone again.
    fn ignore(&mut self) {}

    /// Sends a message to the queue that `bell` belongs to, no later than the next
    /// [`reap`](Self::reap) here. The message carries nothing: what it is about is to be put where
    /// the other thread looks before. A queue that has no way to send it uses the waker.
    fn ring(&mut self, bell: &Bell) {
        bell.wake();
    }

    /// Asks for an early end of the request with `tag`, which comes back by
    /// [`reap`](Self::reap) like any other: failed if that helped, else as it ended. A driver that
    /// cannot stop what was started does nothing.
    fn cancel(&mut self, tag: u32) {
        let _ = tag;
    }
}

/// Waits for everything in `queue`, a queue of the device `name` that is about to be closed. What
/// came from a leaf goes back there, which knows whether it was answered.
pub(crate) fn drain(queue: &mut impl DriverQueue, name: &str) {
    let mut completions = Completions::default();
    while queue.in_flight() > 0 && queue.reap(&mut completions, Wait::Forever).is_ok() {
        for request in completions.ended.drain(..) {
            if request.inner.leaf == 0 {
                request.answer(name);
            }
        }
    }
}

/// How long [`DriverQueue::reap`] waits for a completion when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// Until there is one, or the waker is used.
    Forever,
    /// As `Forever`, and at most until this time.
    Until(Instant),
}

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

/// The queue of a driver that does everything in [`Driver::execute`]: requests end where they
/// start, one after the other.
#[derive(Debug)]
pub struct Synchronous<D> {
    driver: Arc<D>,
}

impl<D: Driver> Synchronous<D> {
    /// A queue for `driver`.
    #[must_use]
    pub fn new(driver: &Arc<D>) -> Self {
        Self { driver: Arc::clone(driver) }
    }
}

impl<D: Driver> DriverQueue for Synchronous<D> {
    const BATCH: usize = 1;

    fn start(&mut self, requests: &mut RequestList, completions: &mut Completions) {
        while let Some(mut request) = requests.pop() {
            let unsupported = || Err(io::Error::from(io::ErrorKind::Unsupported).into());
            let result = self.driver.execute(&mut request).unwrap_or_else(unsupported);
            completions.push(request, result);
        }
    }

    fn reap(&mut self, _completions: &mut Completions, _wait: Wait) -> io::Result<()> {
        Ok(())
    }

    fn in_flight(&self) -> usize {
        0
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

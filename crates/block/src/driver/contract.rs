//! The traits that a driver implements.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::bell::Bell;
use super::completer::Completer;
use super::completions::Completions;
use super::open_error::OpenError;
use crate::request::{Failure, Request, RequestList};
use crate::units::{Limits, Sector};

/// What moves the bytes of a leaf device.
pub trait Driver: Send + Sync + 'static {
    /// The driver's part of a hardware queue, driven by one thread.
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
    /// When the operating system refuses the resources of the queue.
    fn open_queue(self: &Arc<Self>, context: &QueueContext) -> Result<Self::Queue, OpenError>;

    /// Does `request` in the calling thread, whichever it is, and says how that ended. `None`,
    /// without having touched anything, if the driver cannot; it is asked for requests whose
    /// submitter does nothing but wait for them, which saves two changes of threads.
    fn execute(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        let _ = request;
        None
    }

    /// The file that has the bytes of `request`, a read, at their offset in the device, if they can be
    /// taken from there now without waiting. Asked for reads [by place](crate::Bio::by_place).
    fn place(&self, request: &Request) -> Option<&Arc<File>> {
        let _ = request;
        None
    }

    /// The place to which the bytes of a write of `length` bytes to `sector` on can be moved now, at
    /// their offset in the device, without more waiting than a copy has now and then. Asked for writes
    /// by [`splice_at`](crate::splice_at).
    fn splice_target(&self, sector: Sector, length: u64) -> Option<&File> {
        let _ = (sector, length);
        None
    }

    /// Does `request` in the calling thread, whichever it is, if nothing has to be waited for, and
    /// says how that ended. `None` if something has to be, and nothing has changed then but
    /// perhaps the memory that a read fills. Asked for [unwaiting](crate::Bio::unwaiting) bios. A
    /// write that [may](Request::is_seldom_waiting) wait now and then is done if it seldom does.
    fn execute_unwaiting(&self, request: &mut Request) -> Option<Result<(), Failure>> {
        let _ = request;
        None
    }
}

/// The hardware queue that a driver queue is opened for.
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
    /// Requests that end meanwhile are put in `completions`. Those left in `requests` are offered
    /// again when a completion was reaped.
    ///
    /// Requests that were started may go out with the next [`reap`](Self::reap) only, so that one
    /// system call does both: the thread calls that next, before it does anything else.
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
    /// [`reap`](Self::reap) here. The message carries nothing: its cause must be put before where
    /// the other thread looks. A queue that has no way to send it uses the waker.
    fn ring(&mut self, bell: &Bell) {
        bell.wake();
    }

    /// Asks for an early end of the request with `tag`, which comes back by [`reap`](Self::reap)
    /// like any other: failed if that helped, else as it ended. A driver that cannot stop a request
    /// that was started does nothing.
    fn cancel(&mut self, tag: u32) {
        let _ = tag;
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

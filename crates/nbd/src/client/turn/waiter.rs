//! Where a thread waits for the answers to its requests, and how others reach it there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::{Errno, read, write};
use undercroft_block::{Failure, Request};

/// The place of one thread.
///
/// A thread with something for it puts that down, says so in `called`, and then looks whether the
/// thread sleeps; the thread says that it sleeps, and then looks at `called`. All of it is
/// sequentially consistent, so one of the two sees the other, and a thread that is awake costs no
/// system call.
pub(crate) struct Waiter {
    called: AtomicBool,
    asleep: AtomicBool,
    /// Readable when a sleeper was called.
    event: OwnedFd,
    state: Mutex<WaiterState>,
}

#[derive(Default)]
struct WaiterState {
    arrived: Vec<Ended>,
    /// Its thread has gone.
    left: bool,
    /// Becomes readable with every call, too: the thread sleeps for several devices.
    also: Option<Arc<OwnedFd>>,
}

/// How a request ended.
pub(crate) struct Ended {
    pub(crate) request: Request,
    pub(crate) waiter: Arc<Waiter>,
    pub(crate) result: Result<(), Failure>,
}

/// What ended the sleep of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Woken {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
}

impl Ended {
    /// Gives it to the thread that waits for it.
    pub(crate) fn deliver(self) {
        let waiter = Arc::clone(&self.waiter);
        waiter.deliver(self);
    }
}

impl Waiter {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (called, asleep) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Arc::new(Self { called, asleep, event, state: Mutex::default() }))
    }

    /// Gets the thread out of its sleep, or keeps it from the next one.
    pub(crate) fn call(&self) {
        self.called.store(true, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            ring(&self.event);
        }
    }

    /// Whether it was called since it last [heard](Self::hear).
    pub(crate) fn is_called(&self) -> bool {
        self.called.load(Ordering::SeqCst)
    }

    /// The thread looks at everything that it could be called for after this.
    pub(crate) fn hear(&self) {
        self.called.swap(false, Ordering::SeqCst);
    }

    /// Puts down a request that has ended, and calls the thread. Where there is none any more, the
    /// request is dropped: its submitter has been answered.
    pub(crate) fn deliver(&self, ended: Ended) {
        let mut state = self.state.lock();
        if state.left {
            drop(state);
            return drop(ended);
        }
        state.arrived.push(ended);
        let also = state.also.clone();
        drop(state);
        self.call();
        if let Some(event) = also {
            ring(&event);
        }
    }

    /// What others have put down.
    pub(crate) fn take(&self) -> Vec<Ended> {
        std::mem::take(&mut self.state.lock().arrived)
    }

    /// The thread goes away.
    pub(crate) fn leave(&self) {
        let mut state = self.state.lock();
        state.left = true;
        let arrived = std::mem::take(&mut state.arrived);
        drop(state);
        drop(arrived);
    }

    /// Has `event` made readable with every delivery from now on. Whether there was one before.
    pub(crate) fn call_also(&self, event: Option<Arc<OwnedFd>>) -> bool {
        let mut state = self.state.lock();
        state.also = event;
        !state.arrived.is_empty()
    }

    /// Sleeps until it is called, or `socket` is as wanted.
    pub(crate) fn sleep(&self, socket: Option<(BorrowedFd<'_>, PollFlags)>) -> io::Result<Woken> {
        self.asleep.store(true, Ordering::SeqCst);
        if self.is_called() {
            self.asleep.store(false, Ordering::SeqCst);
            return Ok(Woken::default());
        }
        let event = self.event.as_fd();
        let (fd, flags) = socket.unwrap_or((event, PollFlags::IN));
        let mut both =
            [PollFd::from_borrowed_fd(event, PollFlags::IN), PollFd::from_borrowed_fd(fd, flags)];
        let wanted = if socket.is_some() { &mut both[..] } else { &mut both[..1] };
        let slept = poll(wanted, None);
        self.asleep.store(false, Ordering::SeqCst);
        match slept {
            // A signal: the caller looks, and sleeps again.
            Err(Errno::INTR) => return Ok(Woken::default()),
            slept => slept?,
        };
        let (rung, found) = (both[0].revents(), both[1].revents());
        if !rung.is_empty() {
            // It was readable, and has this reader alone.
            let _ = read(&self.event, &mut [0; 8]);
        }
        // The end and errors of a socket are told by reading.
        let ends = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        Ok(Woken {
            readable: found.intersects(ends | PollFlags::IN),
            writable: found.contains(PollFlags::OUT),
        })
    }
}

impl Wake for Waiter {
    fn wake(self: Arc<Self>) {
        self.call();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.call();
    }
}

/// Makes `event` readable.
fn ring(event: &OwnedFd) {
    // It can only fail when the count is at its largest, and then it is readable.
    let _ = write(event, &1_u64.to_ne_bytes());
}

//! How the thread of a connection sleeps, and how others wake it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};

/// Wakes a thread that polls. Several calls before it wakes cost one system call.
pub(crate) struct Wake {
    event: OwnedFd,
    rung: AtomicBool,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, rung: AtomicBool::new(false) })
    }

    /// Wakes the thread, now or when it polls next.
    pub(crate) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // It can only fail when the counter is full, and then the thread wakes anyway.
            let _ = write(&self.event, &1_u64.to_ne_bytes());
        }
    }

    /// For threads that poll by themselves and wake once.
    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.event, PollFlags::IN)
    }

    /// To be called by the thread that was woken, before it looks at what others changed.
    fn clear(&self) {
        let _ = read(&self.event, &mut [0; 8]);
        self.rung.store(false, Ordering::SeqCst);
    }
}

/// What happened to a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// There is something to read, or the end.
    pub(crate) readable: bool,
    /// There is room to write.
    pub(crate) writable: bool,
    /// The other side is gone, or the socket failed.
    pub(crate) gone: bool,
    /// The time is over.
    pub(crate) timed_out: bool,
}

/// Sleeps until the socket is ready in one of the wanted ways, `wake` rings, or `limit` is over.
pub(crate) fn wait(
    socket: BorrowedFd<'_>,
    wake: &Wake,
    wanted: PollFlags,
    limit: Option<Duration>,
) -> io::Result<Ready> {
    let mut both =
        [PollFd::new(&wake.event, PollFlags::IN), PollFd::from_borrowed_fd(socket.as_fd(), wanted)];
    // A limit that does not fit is none.
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let count = match poll(&mut both, limit.as_ref()) {
        Err(Errno::INTR) => return wait_again(),
        count => count?,
    };
    let (rung, found) = (!both[0].revents().is_empty(), both[1].revents());
    if rung {
        wake.clear();
    }
    Ok(Ready {
        readable: found.contains(PollFlags::IN),
        writable: found.contains(PollFlags::OUT),
        gone: found.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        timed_out: count == 0,
    })
}

/// A signal came: the caller looks again and sleeps anew.
fn wait_again() -> io::Result<Ready> {
    Ok(Ready { readable: false, writable: false, gone: false, timed_out: false })
}

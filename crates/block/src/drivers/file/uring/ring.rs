//! One io_uring: how it is set up, filled and entered.
//!
//! The thread that opens a ring is the only one to use it, which lets the kernel run completions in
//! that thread when it asks for them instead of interrupting it (`SINGLE_ISSUER` with
//! `DEFER_TASKRUN`, Linux 6.1). Older kernels get the flags of these that they know.
#![allow(unsafe_code, reason = "the kernel reads and writes memory named in ring entries")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Instant;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{Builder, IoUring, squeue};

use crate::driver::Wait;
use crate::memory::Arena;

/// What ended: the number given to the entry, and the result as a system call returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) number: u64,
    pub(super) result: i32,
}

/// A ring, used by the thread that opened it.
pub(super) struct Ring {
    ring: IoUring,
    /// The memory registered with the ring, so freed after it.
    arena: Option<Arc<Arena>>,
    polled: bool,
    /// Completions appear only when the ring is entered to collect them.
    deferred: bool,
    /// Whether an event descriptor is registered.
    tells: bool,
}

/// The ways to set a ring up, best first.
const MODES: [fn(&mut Builder); 3] = [
    |builder| {
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
        builder.setup_submit_all();
    },
    |builder| {
        builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all();
    },
    |_| {},
];

impl Ring {
    /// A ring with room for `entries` operations to be submitted at once, and twice as many
    /// completions. A polled one asks the device for completions instead of waiting for its
    /// interrupts, and takes only reads and writes of files opened for direct I/O.
    ///
    /// # Errors
    /// What the kernel answers; `Unsupported` when it lacks what this driver cannot do without.
    pub(super) fn open(entries: u32, polled: bool) -> io::Result<Self> {
        let mut refused = io::Error::from(io::ErrorKind::Unsupported);
        for mode in MODES {
            let mut builder = IoUring::builder();
            builder.dontfork();
            if polled {
                builder.setup_iopoll();
            }
            mode(&mut builder);
            match builder.build(entries) {
                Ok(ring) => return Self::checked(ring, polled),
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => refused = error,
                Err(error) => return Err(error),
            }
        }
        Err(refused)
    }

    fn checked(ring: IoUring, polled: bool) -> io::Result<Self> {
        let params = ring.params();
        let complete = params.is_feature_nodrop()
            && params.is_feature_submit_stable()
            && params.is_feature_ext_arg();
        let deferred = params.is_setup_single_issuer();
        if !complete {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Ok(Self { ring, arena: None, polled, deferred, tells: false })
    }

    /// Makes `file` number 0 of the files that entries may name.
    pub(super) fn register_file(&self, file: &File) -> io::Result<()> {
        self.ring.submitter().register_files(&[file.as_raw_fd()])
    }

    /// Lets the file go at once: the kernel closes rings some time after they are dropped, and
    /// would keep a disk from its next user until then. If it refuses, it is as late as that.
    pub(super) fn forget_file(&self) {
        let _ = self.ring.submitter().unregister_files();
    }

    /// Pins the memory of `arena`, so that transfers to it need not.
    ///
    /// # Errors
    /// `OutOfMemory` if the user may not lock so much memory; the ring works without.
    pub(super) fn register_arena(&mut self, arena: &Arc<Arena>) -> io::Result<()> {
        let pieces: Vec<libc::iovec> = arena
            .pieces()
            .map(|piece| libc::iovec {
                iov_base: std::ptr::with_exposed_provenance_mut(piece.start),
                iov_len: piece.len(),
            })
            .collect();
        // SAFETY: allocated memory, which this ring keeps until it is closed.
        unsafe { self.ring.submitter().register_buffers(&pieces)? };
        self.arena = Some(Arc::clone(arena));
        Ok(())
    }

    /// The memory registered with the ring.
    pub(super) fn arena(&self) -> Option<&Arc<Arena>> {
        self.arena.as_ref()
    }

    /// Whether the ring was opened as a polled one.
    pub(super) fn is_polled(&self) -> bool {
        self.polled
    }

    /// Entries that can be pushed before the ring has to be entered.
    pub(super) fn room(&mut self) -> usize {
        let queue = self.ring.submission();
        queue.capacity() - queue.len()
    }

    /// Appends `entry`; returns whether there was room. It goes out when the ring is next entered.
    ///
    /// # Safety
    /// The memory that the entry names must exist, and not be used otherwise, until the event with
    /// its number was collected; lists of pieces of memory only until the ring was entered.
    pub(super) unsafe fn push(&mut self, entry: &squeue::Entry) -> bool {
        // SAFETY: passed on to the caller.
        unsafe { self.ring.submission().push(entry) }.is_ok()
    }

    /// Sends the entries that were pushed, and waits for an event as `wait` says if there is none.
    /// Returns without one too when a signal arrives, at the time given, or when the kernel is
    /// short of memory.
    ///
    /// # Errors
    /// When the ring cannot be used any more.
    pub(super) fn enter(&mut self, wait: Wait) -> io::Result<()> {
        let entered = match wait {
            Wait::No => self.enter_without_waiting(),
            Wait::Forever => self.ring.submit_and_wait(1),
            Wait::Until(time) => {
                let timeout = Timespec::from(time.saturating_duration_since(Instant::now()));
                let arguments = SubmitArgs::new().timespec(&timeout);
                self.ring.submitter().submit_with_args(1, &arguments)
            }
        };
        forgive(entered)
    }

    /// Number of entries that were pushed and not sent.
    pub(super) fn unsent(&mut self) -> usize {
        self.ring.submission().len()
    }

    fn enter_without_waiting(&mut self) -> io::Result<usize> {
        /// `IORING_ENTER_GETEVENTS`.
        const GET_EVENTS: u32 = 1;
        let queue = self.ring.submission();
        let (length, due) = (queue.len(), queue.taskrun() || queue.cq_overflow());
        drop(queue);
        if length == 0 && !due && !self.polled {
            return Ok(0);
        }
        let flags = if due || self.polled || self.deferred { GET_EVENTS } else { 0 };
        // SAFETY: without an argument; the length is that of the submission queue.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(length as u32, 0, flags, None) }
    }

    /// Makes `event` readable whenever an operation ends, until
    /// [`tell_no_more`](Self::tell_no_more). A ring knows one descriptor for all its life.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn tell(&mut self, event: BorrowedFd<'_>) -> io::Result<()> {
        if !self.tells {
            self.ring.submitter().register_eventfd(event.as_raw_fd())?;
            self.tells = true;
        }
        self.ring.completion().enable_eventfd();
        // Pairs with the kernel, which shows what ended before it looks whether to tell.
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Ends what [`tell`](Self::tell) began.
    pub(super) fn tell_no_more(&mut self) {
        if self.tells {
            self.ring.completion().disable_eventfd();
        }
    }

    /// Whether there is something to collect.
    pub(super) fn has_events(&mut self) -> bool {
        !self.ring.completion().is_empty()
    }

    /// Moves the events that are there to `events`.
    pub(super) fn collect(&mut self, events: &mut Vec<Event>) {
        let completed = self.ring.completion();
        events.extend(
            completed.map(|event| Event { number: event.user_data(), result: event.result() }),
        );
    }
}

/// Turns what a ring survives into success.
fn forgive(entered: io::Result<usize>) -> io::Result<()> {
    match entered {
        Ok(_) => Ok(()),
        Err(error) => match error.raw_os_error() {
            // A signal; the time; completions have to be collected first.
            Some(libc::EINTR | libc::ETIME | libc::EBUSY) => Ok(()),
            // Short of memory: others have to get on.
            Some(libc::EAGAIN) => {
                std::thread::yield_now();
                Ok(())
            }
            _ => Err(error),
        },
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open as long as the ring, which the result borrows.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }
}

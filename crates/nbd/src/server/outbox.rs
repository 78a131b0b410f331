//! Answers on their way to the socket.
//!
//! The thread that has an answer sends it, with all that others have added meanwhile, and never
//! waits: when the socket is full the thread of the connection goes on, which sleeps until there is
//! room. While that thread reads requests, answers wait for it, so that one call sends them all.
//! Under TLS it alone sends.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::load::Load;
use super::poll::Wake;
use super::reply::Reply;
use super::stream;

/// Answers in one call, each of up to two pieces.
const BATCH: usize = 64;

/// The answers of a connection.
pub(super) struct Outbox {
    incoming: Mutex<Vec<Reply>>,
    sender: Mutex<Sender>,
    /// Whether the thread of the connection will send.
    corked: AtomicBool,
    /// Whether the socket is full, so that only that thread sends.
    blocked: AtomicBool,
    /// Whether the socket failed; answers are dropped then.
    broken: AtomicBool,
    /// The socket, unless only the thread of the connection may send.
    direct: Option<Arc<OwnedFd>>,
    pub(super) wake: Arc<Wake>,
    pub(super) load: Load,
}

/// What is being sent.
#[derive(Default)]
struct Sender {
    queue: VecDeque<Reply>,
    /// Bytes of the first that were sent.
    sent: usize,
}

impl Outbox {
    pub(super) fn new(direct: Option<Arc<OwnedFd>>, wake: Arc<Wake>, load: Load) -> Self {
        Self {
            incoming: Mutex::default(),
            sender: Mutex::default(),
            corked: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            direct,
            wake,
            load,
        }
    }

    /// Adds an answer, and sends it if no other thread does.
    pub(super) fn push(&self, reply: Reply) {
        self.incoming.lock().push(reply);
        // Pairs with those of `uncork` and `send`: the answer is seen by the thread that sends, or
        // sent here.
        fence(Ordering::SeqCst);
        if self.corked.load(Ordering::SeqCst) {
            return;
        }
        match &self.direct {
            Some(socket) => self.send(&mut |pieces| stream::send(socket, pieces)),
            None => self.wake.ring(),
        }
    }

    /// Has answers wait for the calling thread, that of the connection.
    pub(super) fn cork(&self) {
        self.corked.store(true, Ordering::SeqCst);
    }

    /// Ends [`cork`](Self::cork); to be followed by a [`send`](Self::send).
    pub(super) fn uncork(&self) {
        self.corked.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Sends what is there, unless another thread does or the socket is full.
    pub(super) fn send(&self, send: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>) {
        loop {
            if self.blocked.load(Ordering::SeqCst) {
                return;
            }
            let Some(mut sender) = self.sender.try_lock() else { return };
            match sender.run(self, send) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked.store(true, Ordering::SeqCst);
                    drop(sender);
                    self.wake.ring();
                    return;
                }
                Err(_) => {
                    self.broken.store(true, Ordering::SeqCst);
                    sender.drop_all(self);
                    self.wake.ring();
                }
            }
            drop(sender);
            fence(Ordering::SeqCst);
            // What came since the sender looked last was left to this thread.
            if self.incoming.lock().is_empty() {
                return;
            }
        }
    }

    /// Whether the socket was full.
    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::SeqCst)
    }

    /// The socket has room again.
    pub(super) fn unblock(&self) {
        self.blocked.store(false, Ordering::SeqCst);
    }

    /// Whether the socket failed.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    /// Drops all answers from now on.
    pub(super) fn break_off(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.blocked.store(false, Ordering::SeqCst);
    }

    /// Whether all was sent.
    pub(super) fn is_empty(&self) -> bool {
        let sender = self.sender.lock();
        sender.queue.is_empty() && self.incoming.lock().is_empty()
    }
}

impl Sender {
    /// Sends until nothing is left.
    fn run(
        &mut self,
        outbox: &Outbox,
        send: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<()> {
        loop {
            self.queue.extend(outbox.incoming.lock().drain(..));
            if outbox.is_broken() {
                self.drop_all(outbox);
            }
            if self.queue.is_empty() {
                return Ok(());
            }
            let mut pieces = SmallVec::<[IoSlice<'_>; 2 * BATCH]>::new();
            let mut skip = self.sent;
            for reply in self.queue.iter().take(BATCH) {
                for piece in [Some(&reply.head[..]), reply.data.as_deref()].into_iter().flatten() {
                    let (gone, left) = piece.split_at(skip.min(piece.len()));
                    skip -= gone.len();
                    if !left.is_empty() {
                        pieces.push(IoSlice::new(left));
                    }
                }
            }
            let sent = send(&pieces);
            drop(pieces);
            let count = match sent {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.consume(count, outbox);
        }
    }

    /// Takes away what was sent.
    fn consume(&mut self, count: usize, outbox: &Outbox) {
        self.sent += count;
        let mut given = 0;
        while let Some(first) = self.queue.front() {
            let length = first.head.len() + first.data.as_ref().map_or(0, |data| data.len());
            if self.sent < length {
                break;
            }
            self.sent -= length;
            given += first.charge;
            self.queue.pop_front();
        }
        if given > 0 {
            outbox.load.give(given, &outbox.wake);
        }
    }

    fn drop_all(&mut self, outbox: &Outbox) {
        self.queue.extend(outbox.incoming.lock().drain(..));
        self.sent = 0;
        let given = self.queue.drain(..).map(|reply| reply.charge).sum();
        outbox.load.give(given, &outbox.wake);
    }
}

//! Answers on their way to the socket.
//!
//! The thread that has an answer sends it, with all that others have added meanwhile, and never
//! waits: when the socket is full the thread of the connection goes on, which sleeps until there is
//! room. While that thread reads requests, answers wait for it, so that one call sends them all.
//! Under TLS it alone sends.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use parking_lot::Mutex;

use super::queue::{Answers, Outgoing};
use crate::server::connection::poll::Wake;
use crate::server::connection::quota::Quota;
use crate::server::connection::stream;
use crate::server::writer::Writer;

/// While so many bytes wait for a socket that is full, no more requests are taken: their data would
/// only wait in memory, which the caches of the processor do not hold for so long.
const CLOGGED: usize = 512 << 10;

/// How a call to send ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// All is sent, or left to the thread that is at it.
    Done,
    /// The thread of the connection has to go on: the socket is full, or failed.
    Stuck,
}

/// The answers of a connection.
pub(crate) struct Outbox {
    incoming: Mutex<Answers>,
    /// What is being sent.
    sender: Mutex<Answers>,
    /// Whether the thread of the connection will send.
    corked: AtomicBool,
    /// Whether the socket is full, so that only that thread sends.
    blocked: AtomicBool,
    /// Whether the socket failed; answers are dropped then.
    broken: AtomicBool,
    /// The socket, unless only the thread of the connection may send.
    direct: Option<Arc<OwnedFd>>,
    pub(crate) wake: Arc<Wake>,
    pub(crate) quota: Quota,
    /// Until the last request has ended, which holds this.
    pub(crate) writer: Arc<Writer>,
}

impl Outbox {
    pub(crate) fn new(
        direct: Option<Arc<OwnedFd>>,
        wake: Arc<Wake>,
        quota: Quota,
        writer: Arc<Writer>,
    ) -> Self {
        Self {
            incoming: Mutex::default(),
            sender: Mutex::default(),
            corked: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            direct,
            wake,
            quota,
            writer,
        }
    }

    /// Adds the answer that `reply` appends, and sends it if no other thread does.
    pub(crate) fn push(&self, reply: impl FnOnce(&mut Answers)) {
        reply(&mut self.incoming.lock());
        // Pairs with those of `uncork` and `send`: the answer is seen by the thread that sends, or
        // sent here.
        fence(Ordering::SeqCst);
        if self.corked.load(Ordering::SeqCst) {
            return;
        }
        match &self.direct {
            Some(socket) => {
                if self.send(&mut |next| stream::send(socket, next)) == Sent::Stuck {
                    self.wake.ring();
                }
            }
            None => self.wake.ring(),
        }
    }

    /// Has answers wait for the calling thread, that of the connection.
    pub(crate) fn cork(&self) {
        self.corked.store(true, Ordering::SeqCst);
    }

    /// Ends [`cork`](Self::cork); to be followed by a [`send`](Self::send).
    pub(crate) fn uncork(&self) {
        self.corked.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Sends what is there, unless another thread does or the socket is full.
    pub(crate) fn send(&self, send: &mut dyn FnMut(Outgoing<'_>) -> io::Result<usize>) -> Sent {
        let mut outcome = Sent::Done;
        loop {
            if self.blocked.load(Ordering::SeqCst) {
                return outcome;
            }
            let Some(mut sender) = self.sender.try_lock() else { return outcome };
            match self.send_all(&mut sender, send) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.blocked.store(true, Ordering::SeqCst);
                    return Sent::Stuck;
                }
                Err(_) => {
                    self.broken.store(true, Ordering::SeqCst);
                    self.drop_all(&mut sender);
                    outcome = Sent::Stuck;
                }
            }
            drop(sender);
            fence(Ordering::SeqCst);
            // What came since the sender looked last was left to this thread.
            if self.incoming.lock().is_empty() {
                return outcome;
            }
        }
    }

    /// Whether the socket was full.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::SeqCst)
    }

    /// Whether the socket is full, and much waits for it. For the thread of the connection, which alone
    /// ends that.
    pub(crate) fn is_clogged(&self) -> bool {
        self.is_blocked() && {
            let sender = self.sender.lock();
            sender.bytes() + self.incoming.lock().bytes() >= CLOGGED
        }
    }

    /// The socket has room again.
    pub(crate) fn unblock(&self) {
        self.blocked.store(false, Ordering::SeqCst);
    }

    /// Whether the socket failed.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::SeqCst)
    }

    /// Drops all answers from now on.
    pub(crate) fn break_off(&self) {
        self.broken.store(true, Ordering::SeqCst);
        self.blocked.store(false, Ordering::SeqCst);
    }

    /// Whether all was sent.
    pub(crate) fn is_empty(&self) -> bool {
        let sender = self.sender.lock();
        sender.is_empty() && self.incoming.lock().is_empty()
    }

    /// Sends until nothing is left.
    fn send_all(
        &self,
        sender: &mut Answers,
        send: &mut dyn FnMut(Outgoing<'_>) -> io::Result<usize>,
    ) -> io::Result<()> {
        loop {
            sender.append(&mut self.incoming.lock());
            if self.is_broken() {
                self.drop_all(sender);
            }
            if sender.is_empty() {
                return Ok(());
            }
            // Of a pipe some pages may go before the others.
            let (sent, wanted) = match sender.pipe() {
                Some(pipe) => (send(Outgoing::Pipe(pipe)), 0),
                None => {
                    let (pieces, more) = sender.pieces();
                    let wanted = pieces.iter().map(|piece| piece.len()).sum();
                    (send(Outgoing::Memory { pieces: &pieces, more }), wanted)
                }
            };
            let count = match sent {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let given = sender.consume(count);
            if given > 0 {
                self.quota.give(given, &self.wake);
            }
            if count < wanted && self.direct.is_some() {
                // The socket is full: another call would only say so.
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn drop_all(&self, sender: &mut Answers) {
        let given = sender.clear() + self.incoming.lock().clear();
        self.quota.give(given, &self.wake);
    }
}

//! A connection while a device uses it.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::channel::Sender;
use super::socket::Socket;
use crate::client::flight::Frame;
use crate::protocol::{Command, CommandFlags, Dialect, Request};

/// Most frames of one call.
const BATCH: usize = 256;

/// The sending side of a connection.
pub(crate) struct Link {
    /// The session that it belongs to.
    pub(crate) epoch: u64,
    pub(crate) dialect: Dialect,
    socket: Arc<Socket>,
    outgoing: Mutex<Outgoing>,
    /// Something waits for room in the socket.
    has_rest: AtomicBool,
}

struct Outgoing {
    sender: Sender,
    /// In the order in which they are sent.
    frames: VecDeque<Frame>,
    /// Bytes of the first one that were sent.
    sent: usize,
}

impl Link {
    pub(crate) fn new(epoch: u64, dialect: Dialect, socket: Arc<Socket>, sender: Sender) -> Self {
        let outgoing = Mutex::new(Outgoing { sender, frames: VecDeque::new(), sent: 0 });
        Self { epoch, dialect, socket, outgoing, has_rest: AtomicBool::new(false) }
    }

    /// Sends `frames` with as few calls as possible, and never waits for the server. What there is
    /// no room for goes on with the next ones, or when a thread finds that there
    /// [is](Self::has_rest) a rest, and room for it. Returns whether there is none.
    pub(crate) fn send(&self, frames: impl IntoIterator<Item = Frame>) -> io::Result<bool> {
        let mut outgoing = self.outgoing.lock();
        outgoing.frames.extend(frames);
        let all = outgoing.push()?;
        self.has_rest.store(!all, Ordering::SeqCst);
        Ok(all)
    }

    /// Whether something waits for room.
    pub(crate) fn has_rest(&self) -> bool {
        self.has_rest.load(Ordering::SeqCst)
    }

    /// Sends more of the rest, as there is room.
    pub(crate) fn go_on(&self) -> io::Result<()> {
        self.send([]).map(drop)
    }

    /// The socket, to wait for it.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Ends the connection for all threads.
    pub(crate) fn shut(&self) {
        self.socket.shut();
    }

    /// Takes leave, and ends the connection.
    pub(crate) fn disconnect(&self) {
        let flags = CommandFlags::empty();
        let request =
            Request { command: Command::Disconnect, flags, cookie: 0, offset: 0, length: 0 };
        let mut header = Vec::new();
        // Nothing is under way. A server that takes nothing any more is not waited for.
        if request.encode(self.dialect, &mut header).is_ok() {
            let _ = self.send([Frame { header, data: None, length: 0 }]);
        }
        self.shut();
    }
}

impl Outgoing {
    /// Sends what there is room for; whether nothing is left.
    fn push(&mut self) -> io::Result<bool> {
        while !self.frames.is_empty() {
            let mut pieces = Vec::with_capacity(2 * self.frames.len().min(BATCH));
            for frame in self.frames.iter().take(BATCH) {
                pieces.push(IoSlice::new(&frame.header));
                if let Some(data) = &frame.data {
                    pieces.push(IoSlice::new(&data[..frame.length]));
                }
            }
            let mut rest = &mut pieces[..];
            IoSlice::advance_slices(&mut rest, self.sent);
            match self.sender.try_send(rest)? {
                0 => return Ok(false),
                sent => self.sent += sent,
            }
            while let Some(frame) = self.frames.front()
                && self.sent >= frame.header.len() + frame.length
            {
                self.sent -= frame.header.len() + frame.length;
                self.frames.pop_front();
            }
        }
        self.sender.try_push()
    }
}

//! A connection while a device uses it.

use std::io::{self, IoSlice};
use std::sync::Arc;

use parking_lot::Mutex;

use super::channel::Sender;
use super::flight::Frame;
use super::socket::Socket;
use crate::protocol::{Command, CommandFlags, Dialect, Request};

/// The sending side of a connection.
pub(super) struct Link {
    /// The session that it belongs to.
    pub(super) epoch: u64,
    pub(super) dialect: Dialect,
    socket: Arc<Socket>,
    sender: Mutex<Sender>,
}

impl Link {
    pub(super) fn new(epoch: u64, dialect: Dialect, socket: Arc<Socket>, sender: Sender) -> Self {
        Self { epoch, dialect, socket, sender: Mutex::new(sender) }
    }

    /// Sends `frames` with as few calls as possible. May wait for the server: a thread that receives
    /// must not come here, or both sides could wait for each other.
    pub(super) fn send(&self, frames: &[Frame]) -> io::Result<()> {
        let mut pieces = Vec::with_capacity(2 * frames.len());
        for frame in frames {
            pieces.push(IoSlice::new(&frame.header));
            if let Some(data) = &frame.data {
                pieces.push(IoSlice::new(&data[..frame.length]));
            }
        }
        self.sender.lock().send(&mut pieces)
    }

    /// Ends the connection for all threads.
    pub(super) fn shut(&self) {
        self.socket.shut();
    }

    /// Takes leave, and ends the connection.
    pub(super) fn disconnect(&self) {
        let flags = CommandFlags::empty();
        let request =
            Request { command: Command::Disconnect, flags, cookie: 0, offset: 0, length: 0 };
        let mut header = Vec::new();
        // Nothing is under way. A server that takes nothing any more is not waited for.
        if request.encode(self.dialect, &mut header).is_ok()
            && let Some(mut sender) = self.sender.try_lock()
        {
            let _ = self.socket.set_timeout(Some(super::socket::LEAVE));
            let _ = sender.send(&mut [IoSlice::new(&header)]);
        }
        self.shut();
    }
}

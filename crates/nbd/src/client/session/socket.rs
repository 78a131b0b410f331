//! The socket of a connection.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recvmsg, sendmsg, socket_with,
};

use crate::protocol::Transport;

/// A peer that acknowledges nothing for so long is gone.
const PEER_LOST: Duration = Duration::from_secs(15);

/// The socket of a connection. Readers and writers share it.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    /// When a read or write that waits gives up, and one that need not wait, too: all of an exchange has
    /// this limit, however many calls it takes.
    deadline: Mutex<Option<Instant>>,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects. That, and what follows, has to be over by `deadline`.
    pub(crate) fn connect(to: &Transport, deadline: Instant) -> io::Result<Self> {
        let stream = match to {
            Transport::Unix(path) => Stream::Unix(connect_unix(path, deadline)?),
            Transport::Tcp { host, port } => Stream::Tcp(connect_tcp(host, *port, deadline)?),
        };
        Ok(Self { stream, deadline: Mutex::new(Some(deadline)) })
    }

    /// When reading and writing give up; none: never.
    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) {
        *self.deadline.lock() = deadline;
    }

    /// Fills `pieces` with what comes, and waits for it if `waits`; nothing means the end.
    pub(crate) fn receive(&self, pieces: &mut [IoSliceMut<'_>], waits: bool) -> io::Result<usize> {
        let mut none = RecvAncillaryBuffer::default();
        self.transfer(PollFlags::IN, waits, |wait| {
            let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
            Ok(recvmsg(self, pieces, &mut none, flags)?.bytes)
        })
    }

    /// Calls `transfer`, which is told whether it may wait itself; waits for `event` where it may not.
    fn transfer(
        &self,
        event: PollFlags,
        waits: bool,
        mut transfer: impl FnMut(bool) -> Result<usize, Errno>,
    ) -> io::Result<usize> {
        let deadline = *self.deadline.lock();
        loop {
            if waits {
                left(deadline)?;
            }
            match transfer(waits && deadline.is_none()) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if waits => self.wait(event, deadline)?,
                done => return Ok(done?),
            }
        }
    }

    fn wait(&self, event: PollFlags, deadline: Option<Instant>) -> io::Result<()> {
        let left = left(deadline)?.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(self, event)], left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends some of `pieces` if there is room at once: else the error is one that would block.
    pub(crate) fn try_send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(pieces, false)
    }

    fn send(&self, pieces: &[IoSlice<'_>], waits: bool) -> io::Result<usize> {
        let mut none = SendAncillaryBuffer::default();
        self.transfer(PollFlags::OUT, waits, |wait| {
            let flags = if wait { SendFlags::empty() } else { SendFlags::DONTWAIT };
            sendmsg(self, pieces, &mut none, flags | SendFlags::NOSIGNAL)
        })
    }

    /// Ends all reading and writing, in other threads, too.
    pub(crate) fn shut(&self) {
        // One that is not connected any more is as good as shut.
        let _ = match &self.stream {
            Stream::Tcp(socket) => socket.shutdown(Shutdown::Both),
            Stream::Unix(socket) => socket.shutdown(Shutdown::Both),
        };
    }
}

#[cfg(test)]
impl From<UnixStream> for Socket {
    fn from(socket: UnixStream) -> Self {
        Self { stream: Stream::Unix(socket), deadline: Mutex::new(None) }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(socket) => socket.as_fd(),
            Stream::Unix(socket) => socket.as_fd(),
        }
    }
}

/// Waits for bytes.
impl Read for &Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.receive(&mut [IoSliceMut::new(bytes)], true)
    }
}

/// Waits for room.
impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(bytes)], true)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        // Most pieces that a call takes.
        self.send(&pieces[..pieces.len().min(1024)], true)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The time that is left until `deadline`, which must be some.
fn left(deadline: Option<Instant>) -> io::Result<Option<Duration>> {
    let Some(deadline) = deadline else { return Ok(None) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
}

/// Connects; a server that takes no clients makes that wait, for as long as a send may.
fn connect_unix(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let address = match path.as_os_str().as_bytes().strip_prefix(b"\0") {
        Some(name) => SocketAddrUnix::new_abstract_name(name)?,
        None => SocketAddrUnix::new(path)?,
    };
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, left(Some(deadline))?)?;
    match connect(&socket, &address) {
        Ok(()) => {}
        Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
        Err(error) => return Err(error.into()),
    }
    sockopt::set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket.into())
}

fn connect_tcp(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        // Zero is not permitted as a limit.
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                // So that a host that is gone is noticed, with requests under way or without.
                sockopt::set_socket_keepalive(&socket, true)?;
                sockopt::set_tcp_keepidle(&socket, PEER_LOST)?;
                sockopt::set_tcp_keepintvl(&socket, PEER_LOST / 5)?;
                let milliseconds = PEER_LOST.as_millis() as u32;
                sockopt::set_tcp_user_timeout(&socket, milliseconds)?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

//! The socket of a connection.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recv, recvmsg, sendmsg, sockopt,
};

use crate::protocol::Transport;

/// A peer that acknowledges nothing for so long is gone.
const PEER_LOST: Duration = Duration::from_secs(15);

/// The socket of a connection. Readers and writers share it.
#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects, in `limit` at most where the operating system can say so.
    pub(super) fn connect(to: &Transport, limit: Duration) -> io::Result<Self> {
        match to {
            Transport::Unix(path) => connect_unix(path).map(Self::Unix),
            Transport::Tcp { host, port } => connect_tcp(host, *port, limit).map(Self::Tcp),
        }
    }

    /// How long one read or write may take; none is without a limit.
    pub(super) fn set_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(socket) => {
                socket.set_read_timeout(limit).and_then(|()| socket.set_write_timeout(limit))
            }
            Self::Unix(socket) => {
                socket.set_read_timeout(limit).and_then(|()| socket.set_write_timeout(limit))
            }
        }
    }

    /// Fills `pieces` with what comes, and waits for it if `waits`; nothing means the end.
    pub(super) fn receive(&self, pieces: &mut [IoSliceMut<'_>], waits: bool) -> io::Result<usize> {
        let flags = if waits { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let mut none = RecvAncillaryBuffer::default();
        Ok(rustix::io::retry_on_intr(|| recvmsg(self, pieces, &mut none, flags))?.bytes)
    }

    /// Copies what has come to `bytes`, and leaves it in the socket; does not wait. Nothing means the end.
    pub(super) fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        Ok(rustix::io::retry_on_intr(|| recv(self, &mut *bytes, flags))?.0)
    }

    /// Whether the peer is on this machine, and told at once when bytes are received.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }

    /// Sends some of `pieces` if there is room at once: else the error is one that would block.
    pub(super) fn try_send(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let mut none = SendAncillaryBuffer::default();
        Ok(rustix::io::retry_on_intr(|| sendmsg(self, pieces, &mut none, flags))?)
    }

    /// Ends all reading and writing, in other threads, too.
    pub(super) fn shut(&self) {
        // One that is not connected any more is as good as shut.
        let _ = match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Both),
            Self::Unix(socket) => socket.shutdown(Shutdown::Both),
        };
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).read(bytes),
            Socket::Unix(socket) => (&mut &*socket).read(bytes),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).write(bytes),
            Socket::Unix(socket) => (&mut &*socket).write(bytes),
        }
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Socket::Tcp(socket) => (&mut &*socket).write_vectored(pieces),
            Socket::Unix(socket) => (&mut &*socket).write_vectored(pieces),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    match path.as_os_str().as_bytes().strip_prefix(b"\0") {
        Some(name) => UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?),
        None => UnixStream::connect(path),
    }
}

fn connect_tcp(host: &str, port: u16, limit: Duration) -> io::Result<TcpStream> {
    let until = Instant::now() + limit;
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        let left = until.saturating_duration_since(Instant::now());
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

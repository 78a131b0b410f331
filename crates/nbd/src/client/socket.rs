//! The socket of a connection.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use crate::protocol::Transport;

/// A peer that acknowledges nothing for so long is gone.
const PEER_LOST: Duration = Duration::from_secs(15);

/// How long a server is waited for that does not take the last command.
pub(super) const LEAVE: Duration = Duration::from_secs(1);

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

    /// Ends all reading and writing, in other threads, too.
    pub(super) fn shut(&self) {
        // One that is not connected any more is as good as shut.
        let _ = match self {
            Self::Tcp(socket) => socket.shutdown(Shutdown::Both),
            Self::Unix(socket) => socket.shutdown(Shutdown::Both),
        };
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

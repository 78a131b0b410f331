//! Sockets on which a server waits for clients.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{SocketFlags, accept_with, sockopt};

use super::stream::is_local;

/// Bytes of answers that a socket of this machine holds: several long ones, so that their sender need
/// not wait for the client in the middle of one.
const ANSWERS: usize = 1 << 20;

/// Of a client that has been silent for so long the machine is asked whether it is there: one that is gone
/// must not keep others out for hours.
const CLIENT_LOST: Duration = Duration::from_secs(15);

/// A socket on which a server waits for clients. One with a path removes it when it is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: Option<PathBuf>,
}

impl Listener {
    /// A socket of this machine at `path`. One that a server left there which is gone is replaced.
    ///
    /// # Errors
    /// When the operating system refuses, or a server answers there.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_left_over(path) => {
                std::fs::remove_file(path)?;
                UnixListener::bind(path)
            }
            bound => bound,
        }?;
        Ok(Self { socket: listener.into(), path: Some(path.to_owned()) })
    }

    /// A TCP port: `HOST:PORT`; port 0 is one that is free.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn tcp(address: &str) -> io::Result<Self> {
        Ok(Self::from(OwnedFd::from(TcpListener::bind(address)?)))
    }

    /// The port, if it is TCP.
    ///
    /// # Errors
    /// When the operating system does not tell.
    pub fn port(&self) -> io::Result<Option<u16>> {
        let socket = TcpListener::from(self.socket.try_clone()?);
        Ok(socket.local_addr().ok().map(|address| address.port()))
    }

    /// The next client, if one waits.
    pub(crate) fn accept(&self) -> io::Result<OwnedFd> {
        let socket = accept_with(&self.socket, SocketFlags::CLOEXEC)?;
        // A socket of this machine has neither. Answers must not wait for more of them, and a client
        // that is gone is noticed.
        let _ = sockopt::set_tcp_nodelay(&socket, true);
        let _ = sockopt::set_socket_keepalive(&socket, true);
        let _ = sockopt::set_tcp_keepidle(&socket, CLIENT_LOST);
        let _ = sockopt::set_tcp_keepintvl(&socket, CLIENT_LOST / 5);
        // TCP grows by itself.
        if is_local(&socket) {
            // It is less where the system allows less.
            let _ = sockopt::set_socket_send_buffer_size(&socket, ANSWERS);
        }
        Ok(socket)
    }
}

impl From<OwnedFd> for Listener {
    /// A socket that listens, as a service manager hands it on.
    fn from(socket: OwnedFd) -> Self {
        Self { socket, path: None }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Another may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether a socket is there, and no server behind it.
fn is_left_over(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    is_socket
        && UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

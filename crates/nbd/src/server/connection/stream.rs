//! The bytes of a connection, plain or encrypted. Nothing here waits unless it is asked to.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendFlags, recvmsg,
    sendmsg, sockopt,
};
use rustls::ServerConnection;

use crate::server::answer::Outgoing;

/// A connection.
pub(crate) enum Stream {
    /// As the bytes come.
    Plain(Arc<OwnedFd>),
    /// Encrypted.
    Tls(Box<TlsStream>),
}

/// An encrypted connection; one thread has it.
pub(crate) struct TlsStream {
    socket: Arc<OwnedFd>,
    session: ServerConnection,
}

/// Whether a socket is one of this machine, without a network.
pub(crate) fn is_local(socket: impl AsFd) -> bool {
    sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
}

/// Sends some of `next`.
pub(crate) fn send(socket: &OwnedFd, next: Outgoing<'_>) -> io::Result<usize> {
    match next {
        Outgoing::Memory { pieces, more: false } => send_pieces(socket, pieces, SendFlags::empty()),
        Outgoing::Memory { pieces, more: true } => send_pieces(socket, pieces, SendFlags::MORE),
        Outgoing::Pipe(pipe) => pipe.send(socket),
    }
}

fn send_pieces(socket: &OwnedFd, pieces: &[IoSlice<'_>], flags: SendFlags) -> io::Result<usize> {
    let flags = flags | SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(sendmsg(socket, pieces, &mut SendAncillaryBuffer::default(), flags)?)
}

fn receive(socket: &OwnedFd, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    let mut none = RecvAncillaryBuffer::default();
    Ok(recvmsg(socket, pieces, &mut none, RecvFlags::DONTWAIT)?.bytes)
}

impl Stream {
    /// What is polled.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(socket) => socket.as_fd(),
            Self::Tls(tls) => tls.socket.as_fd(),
        }
    }

    /// The socket, if several threads may send.
    pub(crate) fn direct(&self) -> Option<Arc<OwnedFd>> {
        match self {
            Self::Plain(socket) => Some(Arc::clone(socket)),
            Self::Tls(_) => None,
        }
    }

    /// Whether it is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// From now on encrypted, if it is not. What was read before and not used must not be there.
    pub(crate) fn encrypt(&mut self, session: ServerConnection) {
        if let Self::Plain(socket) = self {
            let socket = Arc::clone(socket);
            *self = Self::Tls(Box::new(TlsStream { socket, session }));
        }
    }

    /// Fills `pieces` with what has come; nothing means the end. Never waits.
    pub(crate) fn receive(&mut self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => receive(socket, pieces),
            Self::Tls(tls) => tls.receive(pieces),
        }
    }

    /// Takes some of `next`; an encrypted one has no use for a pipe.
    pub(crate) fn send(&mut self, next: Outgoing<'_>) -> io::Result<usize> {
        match (self, next) {
            (Self::Plain(socket), next) => send(socket, next),
            (Self::Tls(tls), Outgoing::Memory { pieces, .. }) => tls.send(pieces),
            (Self::Tls(_), Outgoing::Pipe(_)) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends what was taken and is still here; whether nothing is left.
    pub(crate) fn push_out(&mut self) -> io::Result<bool> {
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(tls) => tls.push_out(),
        }
    }

    /// Says good-bye, as far as that goes without waiting.
    pub(crate) fn close(&mut self) {
        if let Self::Tls(tls) = self {
            tls.session.send_close_notify();
            // The client may be gone.
            let _ = tls.push_out();
        }
    }
}

impl TlsStream {
    fn receive(&mut self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        loop {
            match self.session.reader().read_vectored(pieces) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The client closed the socket without saying so first; many do.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            let came = self.session.read_tls(&mut Socket(&self.socket))?;
            self.session
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.push_out()?;
            if came == 0 {
                return Ok(0);
            }
        }
    }

    fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let taken = self.session.writer().write_vectored(pieces)?;
        let is_out = self.push_out()?;
        match taken {
            0 if !is_out => Err(io::ErrorKind::WouldBlock.into()),
            0 => Ok(self.session.writer().write_vectored(pieces)?),
            taken => Ok(taken),
        }
    }

    fn push_out(&mut self) -> io::Result<bool> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut Socket(&self.socket)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// The socket as `rustls` wants it.
struct Socket<'a>(&'a OwnedFd);

impl io::Read for Socket<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        receive(self.0, &mut [IoSliceMut::new(bytes)])
    }
}

impl io::Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        send_pieces(self.0, &[IoSlice::new(bytes)], SendFlags::empty())
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        send_pieces(self.0, pieces, SendFlags::empty())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

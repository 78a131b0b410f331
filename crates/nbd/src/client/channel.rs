//! Both directions of a connection, encrypted or not: one thread receives while others send.

use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ClientConnection;

use super::socket::Socket;
use super::tls::Tls;

/// Answers that are received with one call, in bytes: many small ones, and headers of large ones.
const RECEIVED: usize = 64 << 10;
/// Bytes that are encrypted at a time.
const ENCRYPTED: usize = 128 << 10;

/// The state of TLS. Its lock is held for work in memory alone, never while a socket is waited for,
/// or neither side could make room for the other.
type Session = Arc<Mutex<ClientConnection>>;

/// The receiving direction.
pub(super) type Receiver = BufReader<Incoming>;

/// What comes from a socket, decrypted.
pub(super) struct Incoming {
    socket: Arc<Socket>,
    tls: Option<(Session, Raw)>,
}

/// Encrypted bytes; those in the range wait for room in the session.
struct Raw {
    bytes: Box<[u8]>,
    waiting: Range<usize>,
}

/// The sending direction.
pub(super) struct Sender {
    socket: Arc<Socket>,
    tls: Option<(Session, Vec<u8>)>,
}

/// Both directions of `socket`.
pub(super) fn plain(socket: &Arc<Socket>) -> (Receiver, Sender) {
    let incoming = Incoming { socket: Arc::clone(socket), tls: None };
    let sender = Sender { socket: Arc::clone(socket), tls: None };
    (BufReader::with_capacity(RECEIVED, incoming), sender)
}

/// Both directions of `socket`, encrypted from here on, after a handshake.
pub(super) fn encrypted(socket: &Arc<Socket>, tls: &Tls) -> io::Result<(Receiver, Sender)> {
    let session = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone());
    let mut session = session.map_err(io::Error::other)?;
    session.set_buffer_limit(Some(2 * ENCRYPTED));
    session.complete_io(&mut &**socket)?;
    let session = Arc::new(Mutex::new(session));
    let raw = Raw { bytes: vec![0; RECEIVED].into_boxed_slice(), waiting: 0..0 };
    let incoming = Incoming { socket: Arc::clone(socket), tls: Some((Arc::clone(&session), raw)) };
    let sender = Sender { socket: Arc::clone(socket), tls: Some((session, Vec::new())) };
    Ok((BufReader::with_capacity(RECEIVED, incoming), sender))
}

impl Read for Incoming {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some((session, raw)) = &mut self.tls else { return (&*self.socket).read(bytes) };
        loop {
            match session.lock().reader().read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            if raw.waiting.is_empty() {
                raw.waiting = 0..(&*self.socket).read(&mut raw.bytes)?;
            }
            // It takes as much as it has room for. The end of the socket is told, too.
            let mut session = session.lock();
            let taken = session.read_tls(&mut &raw.bytes[raw.waiting.clone()])?;
            raw.waiting.start += taken;
            session.process_new_packets().map_err(io::Error::other)?;
        }
    }
}

impl Sender {
    /// Sends all of `pieces`, in order.
    pub(super) fn send(&mut self, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
        if self.tls.is_some() {
            return pieces.iter().try_for_each(|piece| self.encrypt(piece));
        }
        IoSlice::advance_slices(&mut pieces, 0);
        while !pieces.is_empty() {
            // More pieces than a call takes are cut off by the standard library.
            match (&*self.socket).write_vectored(pieces) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => IoSlice::advance_slices(&mut pieces, sent),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn encrypt(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some((session, out)) = &mut self.tls else { return Ok(()) };
        for bytes in bytes.chunks(ENCRYPTED) {
            out.clear();
            let mut session = session.lock();
            session.writer().write_all(bytes)?;
            while session.wants_write() {
                session.write_tls(out)?;
            }
            drop(session);
            (&*self.socket).write_all(out)?;
        }
        Ok(())
    }
}

/// Whether `receiver` has `length` bytes that it need not wait for.
pub(super) fn has(receiver: &Receiver, length: usize) -> bool {
    receiver.buffer().len() >= length
}

/// Passes over `length` bytes.
pub(super) fn skip(receiver: &mut Receiver, mut length: u64) -> io::Result<()> {
    while length > 0 {
        let available = receiver.fill_buf()?.len();
        if available == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let passed = usize::try_from(length).unwrap_or(usize::MAX).min(available);
        receiver.consume(passed);
        length -= passed as u64;
    }
    Ok(())
}

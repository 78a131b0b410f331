//! Both directions of a connection, encrypted or not: one thread receives while others send.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::ClientConnection;

use super::socket::Socket;
use super::tls::Tls;

/// Bytes that are received ahead: many small answers with one call.
const AHEAD: usize = 64 << 10;
/// The same behind an answer with at least [`LONG`] bytes: those of the next one go to their place
/// without a copy.
const AHEAD_OF_LONG: usize = 512;
const LONG: u64 = 16 << 10;
/// Bytes that are encrypted at a time.
const ENCRYPTED: usize = 128 << 10;
/// Most pieces that a call takes.
const MAX_PIECES: usize = 1024;

/// The state of TLS. Its lock is held for work in memory alone, never while a socket is waited for,
/// or neither side could make room for the other.
type Session = Arc<Mutex<ClientConnection>>;

/// The receiving direction. As [`Read`] it waits for bytes; the end of the connection is an error.
pub(crate) struct Receiver {
    socket: Arc<Socket>,
    tls: Option<(Session, Raw)>,
    buffer: Box<[u8]>,
    /// What was received ahead.
    held: Range<usize>,
    /// Bytes to receive ahead.
    ahead: usize,
}

/// Encrypted bytes; those in the range wait for room in the session.
struct Raw {
    bytes: Box<[u8]>,
    waiting: Range<usize>,
}

/// The sending direction.
pub(crate) struct Sender {
    socket: Arc<Socket>,
    tls: Option<Encrypting>,
}

struct Encrypting {
    session: Session,
    /// Encrypted, and to be sent from the number on.
    out: Vec<u8>,
    sent: usize,
}

/// Both directions of `socket`.
pub(crate) fn plain(socket: &Arc<Socket>) -> (Receiver, Sender) {
    let sender = Sender { socket: Arc::clone(socket), tls: None };
    (Receiver::new(socket, None), sender)
}

/// Both directions of `socket`, encrypted from here on, after a handshake.
pub(crate) fn encrypted(socket: &Arc<Socket>, tls: &Tls) -> io::Result<(Receiver, Sender)> {
    let session = ClientConnection::new(Arc::clone(&tls.config), tls.name.clone());
    let mut session = session.map_err(io::Error::other)?;
    session.set_buffer_limit(Some(2 * ENCRYPTED));
    session.complete_io(&mut &**socket)?;
    let session = Arc::new(Mutex::new(session));
    let raw = Raw { bytes: vec![0; AHEAD].into_boxed_slice(), waiting: 0..0 };
    let receiver = Receiver::new(socket, Some((Arc::clone(&session), raw)));
    let tls = Some(Encrypting { session, out: Vec::new(), sent: 0 });
    Ok((receiver, Sender { socket: Arc::clone(socket), tls }))
}

impl Receiver {
    fn new(socket: &Arc<Socket>, tls: Option<(Session, Raw)>) -> Self {
        let buffer = vec![0; AHEAD].into_boxed_slice();
        let socket = Arc::clone(socket);
        Self { socket, tls, buffer, held: 0..0, ahead: AHEAD }
    }

    /// What has been received and not used.
    pub(crate) fn held(&self) -> &[u8] {
        &self.buffer[self.held.clone()]
    }

    /// Whether bytes may have come that a poll of the socket does not show.
    pub(crate) fn may_hide_bytes(&self) -> bool {
        self.tls.is_some()
    }

    /// Receives ahead what has come; false if nothing has.
    pub(crate) fn look(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.held.clone(), 0);
        self.held = 0..self.held.len();
        let end = self.buffer.len().min(self.held.end + self.ahead);
        let Self { socket, tls, buffer, held, .. } = self;
        let free = &mut buffer[held.end..end];
        let came = come(receive(socket, tls, &mut [IoSliceMut::new(free)], false))?;
        held.end += came;
        Ok(came > 0)
    }

    /// Fills all of `pieces`, which belong to one answer, and waits for it.
    pub(crate) fn read_pieces(&mut self, pieces: &mut [&mut [u8]]) -> io::Result<()> {
        let total: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.ahead = if total >= LONG { AHEAD_OF_LONG } else { AHEAD };
        let (mut first, mut skip) = (0, 0);
        while first < pieces.len() {
            let rest = &mut pieces[first..];
            let count = if self.held.is_empty() {
                self.receive_around(rest, skip)?
            } else {
                self.take_held(&mut rest[0][skip..])
            };
            skip += count;
            while first < pieces.len() && skip >= pieces[first].len() {
                skip -= pieces[first].len();
                first += 1;
            }
        }
        Ok(())
    }

    /// Fills the front of `bytes` with what was received ahead; returns how many that were.
    fn take_held(&mut self, bytes: &mut [u8]) -> usize {
        let count = bytes.len().min(self.held.len());
        bytes[..count].copy_from_slice(&self.held()[..count]);
        self.held.start += count;
        count
    }

    /// Fills some of `pieces` but the first `skip` bytes, and what comes behind them goes into the
    /// buffer, which is empty. Returns how many bytes went to the pieces.
    fn receive_around(&mut self, pieces: &mut [&mut [u8]], skip: usize) -> io::Result<usize> {
        let Self { socket, tls, buffer, held, ahead, .. } = self;
        let (mut left, all) = (0, pieces.len() < MAX_PIECES);
        let mut around = Vec::with_capacity(pieces.len().min(MAX_PIECES - 1) + 1);
        for (number, piece) in pieces.iter_mut().take(MAX_PIECES - 1).enumerate() {
            let piece = &mut piece[if number == 0 { skip } else { 0 }..];
            left += piece.len();
            around.push(IoSliceMut::new(piece));
        }
        if all {
            around.push(IoSliceMut::new(&mut buffer[..*ahead]));
        }
        match receive(socket, tls, &mut around, true)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                *held = 0..count.saturating_sub(left);
                Ok(count.min(left))
            }
        }
    }

    /// Passes over `length` bytes.
    pub(crate) fn skip(&mut self, length: u64) -> io::Result<()> {
        io::copy(&mut self.take(length), &mut io::sink()).map(drop)
    }
}

impl Read for Receiver {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        if self.held.is_empty() {
            return self.receive_around(&mut [bytes], 0);
        }
        Ok(self.take_held(bytes))
    }
}

/// Bytes that have come, if any; the end is an error.
fn come(received: io::Result<usize>) -> io::Result<usize> {
    match received {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}

/// Fills `pieces` with what comes, decrypted; nothing means the end.
fn receive(
    socket: &Socket,
    tls: &mut Option<(Session, Raw)>,
    pieces: &mut [IoSliceMut<'_>],
    waits: bool,
) -> io::Result<usize> {
    let Some((session, raw)) = tls else { return socket.receive(pieces, waits) };
    loop {
        match session.lock().reader().read_vectored(pieces) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
        if raw.waiting.is_empty() {
            let bytes = &mut [IoSliceMut::new(&mut raw.bytes)];
            raw.waiting = 0..socket.receive(bytes, waits)?;
        }
        // It takes as much as it has room for. The end of the socket is told, too.
        let mut session = session.lock();
        let taken = session.read_tls(&mut &raw.bytes[raw.waiting.clone()])?;
        raw.waiting.start += taken;
        session.process_new_packets().map_err(io::Error::other)?;
    }
}

impl Sender {
    /// Sends all of `pieces`, in order, and waits for room.
    pub(crate) fn send(&mut self, mut pieces: &mut [IoSlice<'_>]) -> io::Result<()> {
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
        let Some(tls) = &mut self.tls else { return Ok(()) };
        for bytes in bytes.chunks(ENCRYPTED) {
            tls.take(&[IoSlice::new(bytes)])?;
            (&*self.socket).write_all(&tls.out)?;
            tls.sent = tls.out.len();
        }
        Ok(())
    }

    /// Sends as much of `pieces` as there is room for at once; returns how many bytes it has taken,
    /// none if there was no room.
    pub(crate) fn try_send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let pieces = &pieces[..pieces.len().min(MAX_PIECES)];
        if !self.try_push()? {
            return Ok(0);
        }
        let Some(tls) = &mut self.tls else { return room(self.socket.try_send(pieces)) };
        let taken = tls.take(pieces)?;
        self.try_push()?;
        Ok(taken)
    }

    /// Sends what was taken and is still here, as far as there is room; whether nothing is left.
    pub(crate) fn try_push(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.sent < tls.out.len() {
            match room(self.socket.try_send(&[IoSlice::new(&tls.out[tls.sent..])]))? {
                0 => return Ok(false),
                sent => tls.sent += sent,
            }
        }
        Ok(true)
    }
}

/// No room is nothing sent.
fn room(sent: io::Result<usize>) -> io::Result<usize> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Ok(0) => Err(io::ErrorKind::WriteZero.into()),
        other => other,
    }
}

impl Encrypting {
    /// Encrypts the first of `pieces`, and returns how many bytes of them. What was encrypted before
    /// has been sent.
    fn take(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.sent = 0;
        self.out.clear();
        let mut session = self.session.lock();
        let mut taken = 0;
        for piece in pieces {
            let piece = &piece[..piece.len().min(ENCRYPTED - taken)];
            session.writer().write_all(piece)?;
            taken += piece.len();
            if taken == ENCRYPTED {
                break;
            }
        }
        while session.wants_write() {
            session.write_tls(&mut self.out)?;
        }
        Ok(taken)
    }
}

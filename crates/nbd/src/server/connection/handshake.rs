//! The handshake: bytes to and from a client until it has chosen an export.

use std::io::{self, IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::end::End;
use super::input::Input;
use super::negotiation::{Negotiation, Session, Step};
use super::poll::{self, Wake};
use super::stream::Stream;
use super::tls::Tls;
use crate::protocol::{
    ClientFlags, ClientOption, Greeting, HandshakeFlags, MAX_OPTION_DATA, OPTION_HEADER,
    OptionHeader,
};
use crate::server::answer::Outgoing;
use crate::server::export::Export;

/// Time for all of it.
const LIMIT: Duration = Duration::from_secs(60);
/// Data of an option beyond this is not skipped.
const LONGEST_SKIPPED: u32 = 16 << 20;

/// A connection that waits for the client as long as it may.
pub(crate) struct Handshake<'h> {
    pub(crate) stream: Stream,
    pub(crate) input: Input,
    wake: &'h Wake,
    stops: &'h AtomicBool,
    end: Instant,
}

impl<'h> Handshake<'h> {
    pub(crate) fn new(stream: Stream, wake: &'h Wake, stops: &'h AtomicBool) -> Self {
        Self { stream, input: Input::new(), wake, stops, end: Instant::now() + LIMIT }
    }

    /// Asks and answers until the client has chosen.
    pub(crate) fn run(
        &mut self,
        exports: &[Arc<Export>],
        tls: Option<&Tls>,
    ) -> Result<Session, End> {
        self.send(&Greeting { flags: HandshakeFlags::all() }.encode())?;
        let flags = ClientFlags::decode(self.array()?)?;
        let mut negotiation = Negotiation::new(exports, tls, flags);
        loop {
            let header = OptionHeader::decode(&self.array::<OPTION_HEADER>()?)?;
            let option = if header.length > MAX_OPTION_DATA {
                self.skip(header.length)?;
                Err(crate::protocol::ProtocolError::TooLong {
                    what: "data of an option",
                    length: header.length.into(),
                    limit: MAX_OPTION_DATA.into(),
                })
            } else {
                let length = header.length as usize;
                self.need(length)?;
                let option = ClientOption::decode(header.code, &self.input.bytes()[..length]);
                self.input.consume(length);
                option
            };
            let mut out = Vec::new();
            let step = negotiation.answer(header.code, option, &mut out);
            self.send(&out)?;
            match step? {
                Step::Option => {}
                Step::Transmit(session) => return Ok(session),
                Step::End(end) => return Err(end),
                Step::Encrypt => {
                    if let Some(tls) = tls {
                        self.encrypt(tls)?;
                    }
                    negotiation.encrypted();
                }
            }
        }
    }

    fn encrypt(&mut self, tls: &Tls) -> Result<(), End> {
        if !self.input.bytes().is_empty() {
            // Someone between may have put it there, to have it taken for encrypted.
            return Err(End::Violation("options behind the one that starts TLS"));
        }
        let session = tls.session().map_err(io::Error::other)?;
        self.stream.encrypt(session);
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], End> {
        self.need(N)?;
        let bytes = self.input.bytes().first_chunk().copied();
        self.input.consume(N);
        bytes.ok_or(End::Client)
    }

    /// Waits until `count` bytes are there.
    fn need(&mut self, count: usize) -> Result<(), End> {
        while self.input.bytes().len() < count {
            self.receive()?;
        }
        Ok(())
    }

    fn skip(&mut self, length: u32) -> Result<(), End> {
        if length > LONGEST_SKIPPED {
            return Err(End::Violation("an option with data of many MiB"));
        }
        let mut left = length as usize;
        while left > 0 {
            let here = left.min(self.input.bytes().len());
            self.input.consume(here);
            left -= here;
            if left > 0 {
                self.receive()?;
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), End> {
        loop {
            if self.stops.load(Ordering::SeqCst) {
                return Err(End::Stopped);
            }
            match self.stream.receive(&mut [IoSliceMut::new(self.input.room())]) {
                Ok(0) => return Err(End::Client),
                Ok(count) => {
                    self.input.fill(count);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let is_out = self.stream.push_out()?;
                    let more = if is_out { PollFlags::empty() } else { PollFlags::OUT };
                    self.sleep(PollFlags::IN | more)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), End> {
        while !bytes.is_empty() {
            let pieces = &[IoSlice::new(bytes)];
            match self.stream.send(Outgoing::Memory { pieces, more: false }) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.sleep(PollFlags::OUT)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        while !self.stream.push_out()? {
            self.sleep(PollFlags::OUT)?;
        }
        Ok(())
    }

    fn sleep(&self, wanted: PollFlags) -> Result<(), End> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(End::Slow);
        }
        poll::wait(self.stream.socket(), self.wake, wanted, Some(left))?;
        if self.stops.load(Ordering::SeqCst) { Err(End::Stopped) } else { Ok(()) }
    }
}

//! All connections of a device, made together: at the beginning, and after one has broken.

pub(crate) mod answer;
pub(crate) mod channel;
pub(crate) mod handshake;
pub(crate) mod link;
mod socket;
pub(crate) mod supervisor;
pub(crate) mod tls;

use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

use self::answer::Part;
use self::handshake::{Connection, Dialer};
use super::error::ClientError;
use super::export_limits::ExportLimits;
use super::flight::{io_error, unasked};
use super::unflushed::{Change, Content, together};
use super::zeroes::Zeroes;
use crate::protocol::{Command, CommandFlags, Dialect, Request, StatusExtent, WireError};

/// Writes under way while they are sent again.
const AGAIN: usize = 16;
/// Most questions for the zeroes of an export before it is used.
const QUESTIONS: usize = 64;
/// Longest range of a question without extended headers. Block sizes divide it.
const QUESTION: u64 = 1 << 31;

impl Dialer {
    /// Connects once, and looks what the export is, before `deadline`.
    pub(crate) fn open(&self, deadline: Instant) -> Result<Connection, ClientError> {
        self.dial(deadline)?.go()
    }

    /// Connects as often as `first`, a connection to the same export, permits.
    pub(crate) fn join(
        &self,
        first: Connection,
        limits: &ExportLimits,
        wanted: usize,
        deadline: Instant,
    ) -> Result<Vec<Connection>, ClientError> {
        let mut connections = vec![first];
        while connections.len() < limits.connections(wanted) {
            let next = self.open(deadline)?;
            self.check(limits, &next)?;
            connections.push(next);
        }
        Ok(connections)
    }

    /// Checks that the export is still the same.
    fn check(&self, limits: &ExportLimits, connection: &Connection) -> Result<(), ClientError> {
        match limits.difference(&connection.terms) {
            Some(what) => Err(ClientError::Changed { uri: self.uri.to_string(), what }),
            None => Ok(()),
        }
    }

    /// Connects anew in `limit`, and gives the server the writes that it may have lost, for some of which it
    /// may take as long again.
    pub(crate) fn reopen(
        &self,
        limits: &ExportLimits,
        changes: &[Change],
        wanted: usize,
        limit: Duration,
    ) -> Result<Vec<Connection>, ClientError> {
        let deadline = Instant::now() + limit;
        let first = self.open(deadline)?;
        self.check(limits, &first)?;
        let mut connections = self.join(first, limits, wanted, deadline)?;
        if let Some(first) = connections.first_mut() {
            first.send_again(changes, limit).map_err(|failed| self.explain(failed))?;
        }
        Ok(connections)
    }

    fn explain(&self, failed: Failed) -> ClientError {
        let uri = self.uri.to_string();
        match failed {
            Failed::Connection(source) => ClientError::Handshake { uri, source },
            // It is back soon, perhaps.
            Failed::Server(WireError::Shutdown) => {
                ClientError::Handshake { uri, source: io_error(WireError::Shutdown) }
            }
            Failed::Server(error) => ClientError::Lost { uri, problem: error.to_string() },
        }
    }
}

/// Why a command failed before a device used the connection.
enum Failed {
    Connection(io::Error),
    Server(WireError),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl Connection {
    fn send(&mut self, request: &Request, data: &[u8]) -> io::Result<()> {
        let mut header = Vec::new();
        request.encode(self.terms.dialect, &mut header).map_err(io::Error::other)?;
        self.sender.send(&mut [IoSlice::new(&header), IoSlice::new(data)])
    }

    /// Sends `changes` and waits for the answers: of those that are sent together for `limit`.
    fn send_again(&mut self, mut changes: &[Change], limit: Duration) -> Result<(), Failed> {
        while !changes.is_empty() {
            self.socket.set_deadline(Some(Instant::now() + limit));
            let (batch, rest) = changes.split_at(together(changes, AGAIN));
            let mut sent = 0;
            for change in batch {
                let (command, mut flags, data) = match &change.content {
                    Content::Bytes(bytes, from) => {
                        (Command::Write, CommandFlags::empty(), &bytes[*from..])
                    }
                    Content::Zeroes(flags) => (Command::WriteZeroes, *flags, &[][..]),
                    // None is among those that may be lost.
                    Content::Durable => continue,
                };
                let with_payload =
                    command == Command::Write && self.terms.dialect == Dialect::Extended;
                flags.set(CommandFlags::PAYLOAD_LEN, with_payload);
                let (offset, length) = (change.offset, change.length);
                // A part of a change, or zeroes that share bytes longer than the last of them.
                let data = &data[..data.len().min(length as usize)];
                self.send(&Request { command, flags, cookie: sent, offset, length }, data)?;
                sent += 1;
            }
            for _ in 0..sent {
                self.answered(|_| ())?;
            }
            changes = rest;
        }
        Ok(())
    }

    /// Waits for the whole answer to one of the commands under way, none of which reads.
    fn answered(&mut self, mut extents: impl FnMut(Vec<StatusExtent>)) -> Result<(), Failed> {
        let mut error = None;
        loop {
            let answer = answer::next(&mut self.receiver, &self.terms)?;
            match answer.part {
                Part::Nothing | Part::Simple => {}
                Part::Status(found) => extents(found),
                Part::Error(found) => error = error.or(Some(found)),
                Part::Data { .. } | Part::Hole { .. } => {
                    return Err(unasked().into());
                }
            }
            if answer.last {
                return error.map_or(Ok(()), |error| Err(Failed::Server(error)));
            }
        }
    }

    /// Learns which ranges read as zeroes, as far as that takes few questions and half of the time until
    /// `deadline`. What was written there before is flushed first where that can be said: else the server
    /// might go back to it.
    pub(crate) fn learn_zeroes(
        &mut self,
        limits: &ExportLimits,
        zeroes: &Zeroes,
        deadline: Instant,
    ) -> io::Result<()> {
        if self.terms.allocation.is_none() {
            return Ok(());
        }
        self.socket.set_deadline(Some(deadline));
        let now = Instant::now();
        let enough = now + deadline.saturating_duration_since(now) / 2;
        let flags = CommandFlags::empty();
        if limits.keeps() {
            let request =
                Request { command: Command::Flush, flags, cookie: 0, offset: 0, length: 0 };
            self.send(&request, &[])?;
            if !self.whole(|_| ())? {
                return Ok(());
            }
        }
        let (mut offset, end) = (0, limits.bytes());
        for cookie in 0..QUESTIONS as u64 {
            if offset >= end || Instant::now() >= enough {
                break;
            }
            let most = match self.terms.dialect {
                Dialect::Extended => end,
                Dialect::Simple | Dialect::Structured => QUESTION,
            };
            let length = most.min(end - offset);
            let request = Request { command: Command::BlockStatus, flags, cookie, offset, length };
            self.send(&request, &[])?;
            let mut covered: u64 = 0;
            let known = self.whole(|extents| {
                covered = extents.iter().fold(0, |sum, extent| sum.saturating_add(extent.length));
                zeroes.learn(offset, &extents);
            })?;
            if !known || covered == 0 {
                break;
            }
            offset = offset.saturating_add(covered);
        }
        zeroes.settle();
        Ok(())
    }

    /// Waits for an answer; false if the server refused.
    fn whole(&mut self, extents: impl FnMut(Vec<StatusExtent>)) -> io::Result<bool> {
        match self.answered(extents) {
            Ok(()) => Ok(true),
            Err(Failed::Server(_)) => Ok(false),
            Err(Failed::Connection(error)) => Err(error),
        }
    }
}

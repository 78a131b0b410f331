//! A request on its way: the commands that it takes, one after the other.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use smallvec::SmallVec;
use undercroft_block::{Failure, Operation, Request, SECTOR_SIZE};

use super::export_limits::ExportLimits;
use super::turn::connection_use::ConnectionUse;
use super::turn::waiter::{Ended, Waiter};
use super::unflushed::buffer_cache::BufferCache;
use super::unflushed::copied_bytes::CopiedBytes;
use super::unflushed::{Change, Content};
use crate::protocol::{self, Command, CommandFlags, Dialect, WireError};

/// A request on its way.
pub(crate) struct Flight {
    /// None: a flush of the client's own.
    pub(crate) request: Option<Request>,
    /// Where its end is waited for.
    waiter: Option<Arc<Waiter>>,
    /// The connection that it uses.
    connection_use: ConnectionUse,
    command: Command,
    offset: u64,
    /// Bytes of the range.
    length: u64,
    /// Bytes of the range that earlier commands have covered.
    done: u64,
    /// Most bytes of one command.
    step: u64,
    /// What a write sends.
    data: Option<Arc<CopiedBytes>>,
    /// It has to be durable when it is answered.
    durable: bool,
    /// When it began to wait for an answer.
    pub(crate) since: Instant,
    /// What it covers, if it is a flush: [`UnflushedWrites::mark`](crate::client::unflushed::UnflushedWrites::mark).
    pub(crate) mark: u64,
    /// Bytes of a read that have come.
    received: u64,
    /// The first error in the answer.
    pub(crate) error: Option<WireError>,
}

/// What is sent for a command.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) header: Vec<u8>,
    pub(crate) data: Option<Arc<CopiedBytes>>,
    /// Bytes of `data` that are sent.
    pub(crate) length: usize,
}

/// What has to be done with a request.
pub(crate) enum Plan {
    /// It is sent.
    Send(Flight),
    /// Nothing has to be sent.
    End(Ended),
}

impl Flight {
    /// What `request`, whose end is waited for at `waiter`, takes. Copies what it writes: that is
    /// needed until it is flushed, and by then its memory belongs to its submitter again.
    pub(crate) fn plan(
        request: Request,
        connection_use: ConnectionUse,
        waiter: &Arc<Waiter>,
        limits: &ExportLimits,
        buffers: &BufferCache,
    ) -> Plan {
        let end =
            |request, result| Plan::End(Ended { request, waiter: Arc::clone(waiter), result });
        let offset = request.sector().0 * SECTOR_SIZE;
        let (length, durable) = (request.length(), request.is_force_unit_access());
        let mut flight = Self {
            request: None,
            waiter: Some(Arc::clone(waiter)),
            connection_use,
            command: Command::Flush,
            offset,
            length,
            done: 0,
            step: limits.step,
            data: None,
            durable,
            since: Instant::now(),
            mark: 0,
            received: 0,
            error: None,
        };
        match request.operation() {
            Operation::Read => {
                (flight.command, flight.step) = (Command::Read, length);
            }
            Operation::Write => {
                (flight.command, flight.step) = (Command::Write, length);
                flight.data = Some(buffers.copy(&request));
            }
            Operation::WriteZeroes if limits.can_write_zeroes() => {
                flight.command = Command::WriteZeroes;
            }
            Operation::WriteZeroes => {
                (flight.command, flight.step) = (Command::Write, limits.payload);
                flight.data = Some(Arc::new(vec![0; length.min(limits.payload) as usize].into()));
            }
            Operation::Discard if limits.can_trim() => flight.command = Command::Trim,
            Operation::Flush if limits.can_flush() => {}
            Operation::Discard | Operation::Flush => return end(request, Ok(())),
            Operation::CloneRange => {
                return end(request, Err(io::Error::from(io::ErrorKind::Unsupported).into()));
            }
        }
        flight.request = Some(request);
        Plan::Send(flight)
    }

    /// A flush that no request asks for.
    pub(crate) fn own_flush(connection_use: ConnectionUse) -> Self {
        Self {
            request: None,
            waiter: None,
            connection_use,
            command: Command::Flush,
            offset: 0,
            length: 0,
            done: 0,
            step: 0,
            data: None,
            durable: false,
            since: Instant::now(),
            mark: 0,
            received: 0,
            error: None,
        }
    }

    /// The number of the connection that it uses.
    pub(crate) fn connection(&self) -> usize {
        self.connection_use.index()
    }

    pub(crate) fn is_read(&self) -> bool {
        self.command == Command::Read
    }

    pub(crate) fn is_flush(&self) -> bool {
        self.command == Command::Flush
    }

    /// The range of the whole request in bytes.
    pub(crate) fn range(&self) -> (u64, u64) {
        (self.offset, self.length)
    }

    /// Whether it changes what is in its range.
    pub(crate) fn modifies(&self) -> bool {
        matches!(self.command, Command::Write | Command::WriteZeroes | Command::Trim)
    }

    /// Whether the command that is under way is the last one of the range.
    fn here(&self) -> u64 {
        self.step.min(self.length - self.done)
    }

    /// What is sent now.
    pub(crate) fn frame(&mut self, cookie: u64, dialect: Dialect, limits: &ExportLimits) -> Frame {
        (self.received, self.error) = (0, None);
        let length = self.here();
        let offset = if self.is_flush() { 0 } else { self.offset + self.done };
        let mut flags = self.flags(limits);
        flags.set(
            CommandFlags::PAYLOAD_LEN,
            dialect == Dialect::Extended && self.command == Command::Write,
        );
        let request = protocol::Request { command: self.command, flags, cookie, offset, length };
        let mut header = Vec::with_capacity(dialect.request_length());
        let encoded = request.encode(dialect, &mut header);
        debug_assert!(encoded.is_ok(), "a step is shorter than 32 bits");
        let data = if self.command == Command::Write { self.data.clone() } else { None };
        let length = if data.is_some() { length as usize } else { 0 };
        Frame { header, data, length }
    }

    fn flags(&self, limits: &ExportLimits) -> CommandFlags {
        let force = self.durable && self.modifies() && limits.can_force_unit_access();
        if force { CommandFlags::FUA } else { CommandFlags::empty() }
    }

    /// The change that the server may lose although it has answered.
    pub(crate) fn change(&self, limits: &ExportLimits) -> Option<Change> {
        let flags = self.flags(limits);
        let content = match (self.command, &self.data) {
            (Command::Write | Command::WriteZeroes, _) if flags.contains(CommandFlags::FUA) => {
                Content::Durable
            }
            (Command::Write, Some(data)) => Content::Bytes(Arc::clone(data), 0),
            (Command::WriteZeroes, _) => Content::Zeroes(flags),
            // What a trim leaves is not said, so that nothing is lost with it.
            _ => return None,
        };
        Some(Change { offset: self.offset + self.done, length: self.here(), content })
    }

    /// Goes on to the next command after one that succeeded; whether there is one.
    pub(crate) fn go_on(&mut self, limits: &ExportLimits) -> bool {
        self.done += self.here();
        if self.done >= self.length {
            let by_flush = self.durable && !limits.can_force_unit_access() && limits.can_flush();
            if !self.modifies() || !by_flush {
                return false;
            }
            (self.command, self.length, self.done) = (Command::Flush, 0, 0);
        }
        self.since = Instant::now();
        true
    }

    /// Whether all bytes of a read have come, once each.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_read() || self.received == self.length
    }

    /// The memory for a part of the range of a read, which is going to be filled.
    pub(crate) fn pieces(
        &mut self,
        offset: u64,
        length: u64,
    ) -> io::Result<SmallVec<[&mut [u8]; 4]>> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let Some(request) = self.request.as_mut().filter(|_| self.command == Command::Read) else {
            return Err(unasked());
        };
        let skip = offset.checked_sub(self.offset);
        let skip = skip.filter(|skip| length <= self.length && *skip <= self.length - length);
        let Some(mut skip) = skip else {
            return Err(wrong("the server sent data of another place"));
        };
        if length > self.length - self.received {
            return Err(wrong("the server sent data twice"));
        }
        self.received += length;
        let mut left = length;
        let mut pieces = SmallVec::new();
        for piece in request.scatter() {
            let size = piece.len() as u64;
            if skip >= size {
                skip -= size;
                continue;
            }
            let end = size.min(skip + left);
            left -= end - skip;
            // Both are at most the length of the piece.
            pieces.push(&mut piece[skip as usize..end as usize]);
            skip = 0;
            if left == 0 {
                break;
            }
        }
        Ok(pieces)
    }

    /// The end of the request, if it is one of a submitter.
    pub(crate) fn end(self, result: Result<(), Failure>) -> Option<Ended> {
        let Self { request, waiter, .. } = self;
        request.zip(waiter).map(|(request, waiter)| Ended { request, waiter, result })
    }
}

/// Data came where no read waits for it.
pub(crate) fn unasked() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the server sent data that no request asked for")
}

/// The error of the operating system for one of a server: the numbers are those of Linux.
pub(crate) fn io_error(error: WireError) -> io::Error {
    io::Error::from_raw_os_error(error.number() as i32)
}

//! From what a request asked for to the bytes of its answer.

use rustix::io::Errno;
use undercroft_block::{BlockError, Buffer, Reason};

use super::queue::{Answers, Data};
use crate::protocol::{
    ChunkHeader, ChunkKind, Command, CommandFlags, Dialect, ErrorChunk, Hole, ReplyFlags, Request,
    SimpleReply, StatusChunk, WireError,
};
use crate::server::read::part::{Part, Parts};
use crate::server::read::zeroes::Runs;

/// What an answer repeats of its request.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    dialect: Dialect,
    cookie: u64,
    offset: u64,
    /// Whether it is a read, which must be answered in chunks where there are some.
    is_read: bool,
    /// Whether its data must be in one chunk.
    in_one: bool,
}

/// What the last piece of an answer has.
#[derive(Clone, Copy)]
struct Last {
    flags: ReplyFlags,
    charge: usize,
}

impl Last {
    /// That of a piece, which may not be the last one.
    fn at(self, is_last: bool) -> Self {
        if is_last { self } else { Self { flags: ReplyFlags::empty(), charge: 0 } }
    }
}

impl Asked {
    pub(crate) fn new(dialect: Dialect, request: &Request) -> Self {
        Self {
            dialect,
            cookie: request.cookie,
            offset: request.offset,
            is_read: request.command == Command::Read,
            in_one: request.flags.contains(CommandFlags::DF),
        }
    }

    /// Whether zeroes need not be sent.
    pub(crate) fn has_chunks(self) -> bool {
        self.dialect != Dialect::Simple
    }

    /// Success without data.
    pub(crate) fn done(self, answers: &mut Answers, charge: usize) {
        answers.push(None, charge, |head| self.bare(None, "", head));
    }

    /// Failure, with words for people where the dialect has room for them.
    pub(crate) fn failed(
        self,
        answers: &mut Answers,
        error: WireError,
        message: &str,
        charge: usize,
    ) {
        answers.push(None, charge, |head| self.bare(Some(error), message, head));
    }

    /// Failure of the device.
    pub(crate) fn failed_by(self, answers: &mut Answers, error: &BlockError, charge: usize) {
        self.failed(answers, wire_error(error), &error.to_string(), charge);
    }

    /// The end of a request that brings no data.
    pub(crate) fn ended(
        self,
        answers: &mut Answers,
        result: &Result<(), BlockError>,
        charge: usize,
    ) {
        match result {
            Ok(()) => self.done(answers, charge),
            Err(error) => self.failed_by(answers, error, charge),
        }
    }

    fn bare(self, error: Option<WireError>, message: &str, head: &mut Vec<u8>) {
        let simple = match self.dialect {
            Dialect::Simple => true,
            Dialect::Structured => !self.is_read && error.is_none(),
            Dialect::Extended => false,
        };
        if simple {
            return SimpleReply { error, cookie: self.cookie }.encode(head);
        }
        let Some(error) = error else {
            return self.chunk(ReplyFlags::DONE, ChunkKind::None, 0, head);
        };
        let mut payload = Vec::new();
        let message = fitting(message).to_owned();
        let chunk = ErrorChunk { error, message, offset: None };
        if chunk.encode(&mut payload).is_err() {
            // A message with a NUL; the error counts without it.
            payload.clear();
            payload.extend_from_slice(&error.number().to_be_bytes());
            payload.extend_from_slice(&[0, 0]);
        }
        self.chunk(ReplyFlags::DONE, ChunkKind::Error, payload.len() as u64, head);
        head.extend_from_slice(&payload);
    }

    /// The data of a read: one chunk, or one for each run of its parts, and zeroes are not sent.
    pub(crate) fn data(self, answers: &mut Answers, parts: Parts, charge: usize) {
        let done = Last { flags: ReplyFlags::DONE, charge };
        // Simple answers have no chunks, and one chunk is what the client wants at times.
        if self.dialect == Dialect::Simple || self.in_one {
            let length = parts.iter().map(Part::len).sum();
            return if self.in_one && parts.iter().all(Part::is_zero) {
                self.hole(answers, length, self.offset, done);
            } else {
                self.joined(answers, parts, length, done);
            };
        }
        let (mut offset, count) = (self.offset, parts.len());
        for (part, number) in parts.into_iter().zip(1..) {
            let (length, last) = (part.len() as u64, done.at(number == count));
            match part {
                Part::Memory(data, runs) => self.runs(answers, data, &runs, offset, last),
                Part::Pipe(pipe) => self.piece(answers, Data::Pipe(pipe), offset, last),
            }
            offset += length;
        }
    }

    /// `parts`, which have `length` bytes, behind one head.
    fn joined(self, answers: &mut Answers, parts: Parts, length: usize, last: Last) {
        let count = parts.len();
        for (part, number) in parts.into_iter().zip(1..) {
            answers.push(Some(part.into_data()), last.at(number == count).charge, |head| {
                if number == 1 {
                    self.data_head(length, self.offset, last.flags, head);
                }
            });
        }
    }

    /// A chunk for each of the `runs` of `data`, which is at `offset`.
    fn runs(
        self,
        answers: &mut Answers,
        mut data: Buffer,
        runs: &Runs,
        mut offset: u64,
        last: Last,
    ) {
        for (run, number) in runs.iter().zip(1..) {
            let last = last.at(number == runs.len());
            let rest = data.split_off(run.length.min(data.len()));
            let piece = std::mem::replace(&mut data, rest);
            if run.is_zero {
                self.hole(answers, piece.len(), offset, last);
            } else {
                self.piece(answers, Data::Memory(piece), offset, last);
            }
            offset += run.length as u64;
        }
    }

    /// A part of the data of a read.
    fn piece(self, answers: &mut Answers, data: Data, offset: u64, last: Last) {
        let length = data.len();
        answers.push(Some(data), last.charge, |head| {
            self.data_head(length, offset, last.flags, head);
        });
    }

    /// What comes before `length` bytes of data.
    fn data_head(self, length: usize, offset: u64, flags: ReplyFlags, head: &mut Vec<u8>) {
        if self.dialect == Dialect::Simple {
            return self.bare(None, "", head);
        }
        self.chunk(flags, ChunkKind::OffsetData, length as u64 + 8, head);
        head.extend_from_slice(&offset.to_be_bytes());
    }

    /// Zeroes of a read.
    fn hole(self, answers: &mut Answers, length: usize, offset: u64, last: Last) {
        // A payload is some MiB at most.
        let hole = Hole { offset, length: length as u32 };
        answers.push(None, last.charge, |head| {
            self.chunk(last.flags, ChunkKind::OffsetHole, Hole::LENGTH as u64, head);
            head.extend_from_slice(&hole.encode());
        });
    }

    /// Block status, a chunk for each context.
    pub(crate) fn status(self, answers: &mut Answers, chunks: &[StatusChunk], charge: usize) {
        let (mut head, mut payload) = (Vec::new(), Vec::new());
        for (index, chunk) in chunks.iter().enumerate() {
            payload.clear();
            if chunk.encode(self.dialect, &mut payload).is_err() {
                let words = "a status beyond 32 bits";
                return self.failed(answers, WireError::Overflow, words, charge);
            }
            let last = index + 1 == chunks.len();
            let flags = if last { ReplyFlags::DONE } else { ReplyFlags::empty() };
            let kind = StatusChunk::kind(self.dialect);
            self.chunk(flags, kind, payload.len() as u64, &mut head);
            head.extend_from_slice(&payload);
        }
        answers.push(None, charge, |heads| heads.append(&mut head));
    }

    fn chunk(self, flags: ReplyFlags, kind: ChunkKind, length: u64, head: &mut Vec<u8>) {
        let header = ChunkHeader { flags, kind, cookie: self.cookie, offset: self.offset, length };
        header
            .encode(self.dialect, head)
            .expect("the dialect has chunks here, and payloads are of some MiB");
    }
}

/// As much of a message as the protocol permits.
fn fitting(message: &str) -> &str {
    let mut end = message.len().min(512);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

fn wire_error(error: &BlockError) -> WireError {
    match &error.reason {
        Reason::ReadOnly => WireError::NotPermitted,
        Reason::OutOfRange { .. } | Reason::Misaligned { .. } => WireError::Invalid,
        Reason::Closed => WireError::Shutdown,
        _ if error.is_no_space() => WireError::NoSpace,
        _ => match error.io_error().and_then(Errno::from_io_error) {
            Some(Errno::NOMEM) => WireError::NoMemory,
            Some(Errno::PERM | Errno::ACCESS | Errno::ROFS) => WireError::NotPermitted,
            _ => WireError::Io,
        },
    }
}

//! Answers as they go to the socket: a head, and data that is not copied.

use undercroft_block::Buffer;

use crate::protocol::{
    ChunkHeader, ChunkKind, Dialect, ErrorChunk, ReplyFlags, Request, SimpleReply, StatusChunk,
    WireError,
};

/// The longest head but for block status: header and offset.
const HEAD: usize = 40;

/// An answer.
pub(super) struct Reply {
    pub(super) head: Vec<u8>,
    pub(super) data: Option<Buffer>,
    /// Memory to give back when it was sent.
    pub(super) charge: usize,
}

/// What an answer repeats of its request.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    dialect: Dialect,
    cookie: u64,
    offset: u64,
    /// Whether it is a read, which must be answered in chunks where there are some.
    is_read: bool,
}

impl Asked {
    pub(super) fn new(dialect: Dialect, request: &Request, is_read: bool) -> Self {
        Self { dialect, cookie: request.cookie, offset: request.offset, is_read }
    }

    /// Success without data.
    pub(super) fn done(self, charge: usize) -> Reply {
        self.bare(None, "", charge)
    }

    /// Failure, with words for people where the dialect has room for them.
    pub(super) fn failed(self, error: WireError, message: &str, charge: usize) -> Reply {
        self.bare(Some(error), message, charge)
    }

    fn bare(self, error: Option<WireError>, message: &str, charge: usize) -> Reply {
        let mut head = Vec::with_capacity(HEAD);
        let simple = match self.dialect {
            Dialect::Simple => true,
            Dialect::Structured => !self.is_read && error.is_none(),
            Dialect::Extended => false,
        };
        if simple {
            SimpleReply { error, cookie: self.cookie }.encode(&mut head);
            return Reply { head, data: None, charge };
        }
        let mut payload = Vec::new();
        let kind = error.map_or(ChunkKind::None, |error| {
            let message = fitting(message).to_owned();
            let chunk = ErrorChunk { error, message, offset: None };
            if chunk.encode(&mut payload).is_err() {
                // A message with a NUL; the error counts without it.
                payload.clear();
                payload.extend_from_slice(&error.number().to_be_bytes());
                payload.extend_from_slice(&[0, 0]);
            }
            ChunkKind::Error
        });
        self.chunk(ReplyFlags::DONE, kind, payload.len() as u64, &mut head);
        head.extend_from_slice(&payload);
        Reply { head, data: None, charge }
    }

    /// The data of a read.
    pub(super) fn data(self, data: Buffer, charge: usize) -> Reply {
        if self.dialect == Dialect::Simple {
            return Reply { data: Some(data), ..self.done(charge) };
        }
        let mut head = Vec::with_capacity(HEAD);
        self.chunk(ReplyFlags::DONE, ChunkKind::OffsetData, data.len() as u64 + 8, &mut head);
        head.extend_from_slice(&self.offset.to_be_bytes());
        Reply { head, data: Some(data), charge }
    }

    /// Block status, a chunk for each context.
    pub(super) fn status(self, chunks: &[StatusChunk], charge: usize) -> Reply {
        let (mut head, mut payload) = (Vec::new(), Vec::new());
        for (index, chunk) in chunks.iter().enumerate() {
            payload.clear();
            if chunk.encode(self.dialect, &mut payload).is_err() {
                return self.failed(WireError::Overflow, "a status beyond 32 bits", charge);
            }
            let last = index + 1 == chunks.len();
            let flags = if last { ReplyFlags::DONE } else { ReplyFlags::empty() };
            let kind = StatusChunk::kind(self.dialect);
            self.chunk(flags, kind, payload.len() as u64, &mut head);
            head.extend_from_slice(&payload);
        }
        Reply { head, data: None, charge }
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

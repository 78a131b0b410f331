//! One answer, or a part of one, as it comes.

use std::io::{self, Read};

use super::channel::Receiver;
use super::handshake::Terms;
use crate::protocol::{
    ChunkHeader, ChunkKind, ErrorChunk, Hole, ProtocolError, ReplyFlags, ReplyHeader, SimpleReply,
    StatusChunk, StatusExtent, WireError,
};

/// Most bytes of a chunk that is not data: a block status with many extents.
const MAX_CHUNK: u64 = 32 << 20;

/// Length of the shortest header of an answer.
pub(crate) const SHORTEST: usize = SimpleReply::LENGTH;

/// An answer, or a part of one.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) cookie: u64,
    /// No more comes for this request.
    pub(crate) last: bool,
    pub(crate) part: Part,
}

/// What a part of an answer brings.
#[derive(Debug)]
pub(crate) enum Part {
    /// Nothing.
    Nothing,
    /// Success in the old form: the data of a read follows.
    Simple,
    /// Bytes, which follow.
    Data { offset: u64, length: u64 },
    /// Zeroes.
    Hole { offset: u64, length: u64 },
    /// Extents of the context of allocation.
    Status(Vec<StatusExtent>),
    /// The request failed.
    Error(WireError),
}

/// Receives the next answer but the data that follows.
pub(crate) fn next(receiver: &mut Receiver, terms: &Terms) -> io::Result<Answer> {
    let mut bytes = [0; 32];
    let mut have = 0;
    let header = loop {
        match ReplyHeader::decode(terms.dialect, &bytes[..have]).map_err(wrong)? {
            Some((header, _)) => break header,
            None => {
                // The shorter form first: the header says which one it is.
                let wanted = if have == 0 { SHORTEST } else { terms.dialect.chunk_length() };
                receiver.read_exact(&mut bytes[have..wanted])?;
                have = wanted;
            }
        }
    };
    match header {
        ReplyHeader::Simple(SimpleReply { error, cookie }) => {
            let part = error.map_or(Part::Simple, Part::Error);
            Ok(Answer { cookie, last: true, part })
        }
        ReplyHeader::Chunk(chunk) => {
            let part = part(receiver, terms, &chunk)?;
            let last = chunk.flags.contains(ReplyFlags::DONE);
            Ok(Answer { cookie: chunk.cookie, last, part })
        }
    }
}

fn part(receiver: &mut Receiver, terms: &Terms, chunk: &ChunkHeader) -> io::Result<Part> {
    if chunk.kind == ChunkKind::OffsetData {
        let mut offset = [0; 8];
        let length = chunk.length.checked_sub(8).filter(|length| *length > 0);
        let length = length.ok_or_else(|| wrong(ProtocolError::Short { what: "data" }))?;
        receiver.read_exact(&mut offset)?;
        return Ok(Part::Data { offset: u64::from_be_bytes(offset), length });
    }
    if chunk.length > MAX_CHUNK {
        let (length, limit) = (chunk.length, MAX_CHUNK);
        return Err(wrong(ProtocolError::TooLong { what: "payload of a chunk", length, limit }));
    }
    if let ChunkKind::None = chunk.kind {
        receiver.skip(chunk.length)?;
        return Ok(Part::Nothing);
    }
    let mut payload = vec![0; chunk.length as usize];
    receiver.read_exact(&mut payload)?;
    Ok(match chunk.kind {
        ChunkKind::OffsetHole => {
            let Hole { offset, length } = Hole::decode(&payload).map_err(wrong)?;
            Part::Hole { offset, length: length.into() }
        }
        kind @ (ChunkKind::BlockStatus | ChunkKind::BlockStatusExtended) => {
            let status = StatusChunk::decode(kind, &payload).map_err(wrong)?;
            let ours = Some(status.context) == terms.allocation;
            if ours { Part::Status(status.extents) } else { Part::Nothing }
        }
        kind if kind.is_error() => {
            Part::Error(ErrorChunk::decode(kind, &payload).map_err(wrong)?.error)
        }
        _ => Part::Nothing,
    })
}

fn wrong(error: ProtocolError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

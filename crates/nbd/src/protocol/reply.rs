//! Answers of a server in the transmission phase.

use bitflags::bitflags;

use super::cursor::{Cursor, put_text, text};
use super::{Dialect, ProtocolError, WireError};

const SIMPLE_MAGIC: u32 = 0x6744_6698;
const STRUCTURED_MAGIC: u32 = 0x668e_33ef;
const EXTENDED_MAGIC: u32 = 0x6e8a_278c;
/// Set in the kind of every chunk that reports an error.
const ERROR: u16 = 1 << 15;

bitflags! {
    /// Flags of a chunk.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyFlags: u16 {
        /// The last chunk of the answer.
        const DONE = 1;
    }
}

/// A simple reply; the data of a read without error follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SimpleReply {
    /// None if the request succeeded.
    pub error: Option<WireError>,
    /// The cookie of the request.
    pub cookie: u64,
}

impl SimpleReply {
    /// Its length.
    pub const LENGTH: usize = 16;

    /// Appends it.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&SIMPLE_MAGIC.to_be_bytes());
        out.extend_from_slice(&self.error.map_or(0, WireError::number).to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
    }
}

/// The kind of a chunk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChunkKind {
    /// Nothing; ends an answer.
    None,
    /// Data: the offset in 8 bytes, then the bytes.
    OffsetData,
    /// A range of zeroes: [`Hole`].
    OffsetHole,
    /// Block status: [`StatusChunk`](super::StatusChunk).
    BlockStatus,
    /// Block status with lengths of 64 bits: [`StatusChunk`](super::StatusChunk).
    BlockStatusExtended,
    /// An error: [`ErrorChunk`].
    Error,
    /// An error at a place: [`ErrorChunk`].
    ErrorOffset,
    /// A number that is not known.
    Unknown(u16),
}

impl ChunkKind {
    fn from_number(number: u16) -> Self {
        match number {
            0 => Self::None,
            1 => Self::OffsetData,
            2 => Self::OffsetHole,
            5 => Self::BlockStatus,
            6 => Self::BlockStatusExtended,
            0x8001 => Self::Error,
            0x8002 => Self::ErrorOffset,
            number => Self::Unknown(number),
        }
    }

    fn number(self) -> u16 {
        match self {
            Self::None => 0,
            Self::OffsetData => 1,
            Self::OffsetHole => 2,
            Self::BlockStatus => 5,
            Self::BlockStatusExtended => 6,
            Self::Error => 0x8001,
            Self::ErrorOffset => 0x8002,
            Self::Unknown(number) => number,
        }
    }

    /// Whether the chunk reports an error, also if it is not known.
    pub fn is_error(self) -> bool {
        self.number() & ERROR != 0
    }
}

/// The header of a chunk; its payload follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChunkHeader {
    /// Its flags; unknown ones are kept, and to be ignored.
    pub flags: ReplyFlags,
    /// Its kind.
    pub kind: ChunkKind,
    /// The cookie of the request.
    pub cookie: u64,
    /// The offset of the request, with extended headers; zero otherwise.
    pub offset: u64,
    /// The length of the payload.
    pub length: u64,
}

impl ChunkHeader {
    /// Appends it. A length beyond 32 bits needs extended headers.
    pub fn encode(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let too_long = |limit| ProtocolError::TooLong {
            what: "payload of a chunk",
            length: self.length,
            limit,
        };
        let magic = match dialect {
            Dialect::Simple => return Err(too_long(0)),
            Dialect::Structured => STRUCTURED_MAGIC,
            Dialect::Extended => EXTENDED_MAGIC,
        };
        let short = u32::try_from(self.length);
        if dialect == Dialect::Structured && short.is_err() {
            return Err(too_long(u32::MAX.into()));
        }
        out.extend_from_slice(&magic.to_be_bytes());
        out.extend_from_slice(&self.flags.bits().to_be_bytes());
        out.extend_from_slice(&self.kind.number().to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        match (dialect, short) {
            (Dialect::Structured, Ok(length)) => out.extend_from_slice(&length.to_be_bytes()),
            _ => {
                out.extend_from_slice(&self.offset.to_be_bytes());
                out.extend_from_slice(&self.length.to_be_bytes());
            }
        }
        Ok(())
    }
}

/// The header of an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReplyHeader {
    /// A simple reply.
    Simple(SimpleReply),
    /// A chunk.
    Chunk(ChunkHeader),
}

impl ReplyHeader {
    /// The header at the start of `bytes`, and its length; none if more bytes are needed.
    pub fn decode(dialect: Dialect, bytes: &[u8]) -> Result<Option<(Self, usize)>, ProtocolError> {
        let mut at = Cursor::new(bytes, "reply");
        if at.left() < 4 {
            return Ok(None);
        }
        let magic = at.u32()?;
        let length = match (dialect, magic) {
            (Dialect::Simple | Dialect::Structured, SIMPLE_MAGIC) => SimpleReply::LENGTH,
            (Dialect::Structured, STRUCTURED_MAGIC) | (Dialect::Extended, EXTENDED_MAGIC) => {
                dialect.chunk_length()
            }
            _ => return Err(ProtocolError::Magic { what: "reply", found: magic.into() }),
        };
        if bytes.len() < length {
            return Ok(None);
        }
        let header = if magic == SIMPLE_MAGIC {
            let error = WireError::from_number(at.u32()?);
            Self::Simple(SimpleReply { error, cookie: at.u64()? })
        } else {
            let flags = ReplyFlags::from_bits_retain(at.u16()?);
            let kind = ChunkKind::from_number(at.u16()?);
            let cookie = at.u64()?;
            let (offset, length) = match dialect {
                Dialect::Extended => (at.u64()?, at.u64()?),
                Dialect::Simple | Dialect::Structured => (0, at.u32()?.into()),
            };
            Self::Chunk(ChunkHeader { flags, kind, cookie, offset, length })
        };
        Ok(Some((header, length)))
    }
}

/// The payload of [`ChunkKind::OffsetHole`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Hole {
    /// Where the zeroes begin.
    pub offset: u64,
    /// How many there are; not zero.
    pub length: u32,
}

impl Hole {
    /// Its length as bytes.
    pub const LENGTH: usize = 12;

    /// As bytes.
    pub fn encode(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(payload, "hole");
        let hole = Self { offset: at.u64()?, length: at.u32()? };
        at.end()?;
        if hole.length == 0 {
            return Err(ProtocolError::Value { what: "length of a hole", found: 0 });
        }
        Ok(hole)
    }
}

/// The payload of a chunk that reports an error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ErrorChunk {
    /// The error.
    pub error: WireError,
    /// Words for people; may be empty.
    pub message: String,
    /// Where it happened, with [`ChunkKind::ErrorOffset`].
    pub offset: Option<u64>,
}

impl ErrorChunk {
    /// Its kind.
    pub fn kind(&self) -> ChunkKind {
        if self.offset.is_some() { ChunkKind::ErrorOffset } else { ChunkKind::Error }
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        out.extend_from_slice(&self.error.number().to_be_bytes());
        let length = u16::try_from(self.message.len()).map_err(|_| ProtocolError::TooLong {
            what: "error message",
            length: self.message.len() as u64,
            limit: super::MAX_STRING as u64,
        })?;
        out.extend_from_slice(&length.to_be_bytes());
        put_text(&self.message, "error message", out)?;
        if let Some(offset) = self.offset {
            out.extend_from_slice(&offset.to_be_bytes());
        }
        Ok(())
    }

    /// From the payload of a chunk whose kind is an error, also one that is not known.
    pub fn decode(kind: ChunkKind, payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(payload, "error chunk");
        let number = at.u32()?;
        let Some(error) = WireError::from_number(number) else {
            return Err(ProtocolError::Value { what: "error", found: number.into() });
        };
        let length = at.u16()?;
        let message = text(at.take(length.into())?, "error message")?;
        let offset = match kind {
            ChunkKind::ErrorOffset => Some(at.u64()?),
            _ => None,
        };
        // What unknown kinds have behind the message is ignored.
        if matches!(kind, ChunkKind::Error | ChunkKind::ErrorOffset) {
            at.end()?;
        }
        Ok(Self { error, message, offset })
    }
}

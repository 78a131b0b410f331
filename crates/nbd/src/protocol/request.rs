//! Requests of a client in the transmission phase.

use bitflags::bitflags;

use super::ProtocolError;
use super::cursor::Cursor;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;

/// The headers that the sides have agreed on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Dialect {
    /// Requests of 28 bytes, simple replies.
    #[default]
    Simple,
    /// Requests of 28 bytes; reads and block status are answered in chunks.
    Structured,
    /// Requests of 32 bytes with lengths of 64 bits, all answers in chunks.
    Extended,
}

impl Dialect {
    /// The length of the header of a request.
    pub fn request_length(self) -> usize {
        match self {
            Self::Simple | Self::Structured => 28,
            Self::Extended => 32,
        }
    }

    /// The length of the header of a chunk; zero where there are none.
    pub fn chunk_length(self) -> usize {
        match self {
            Self::Simple => 0,
            Self::Structured => 20,
            Self::Extended => 32,
        }
    }
}

bitflags! {
    /// Flags of a request.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct CommandFlags: u16 {
        /// Durable when answered.
        const FUA = 1;
        /// Zeroes must have space of their own.
        const NO_HOLE = 1 << 1;
        /// The data of a read comes in one chunk.
        const DF = 1 << 2;
        /// One extent for each context.
        const REQ_ONE = 1 << 3;
        /// Zeroes must be faster than a write, or fail.
        const FAST_ZERO = 1 << 4;
        /// The length is that of a payload (extended headers).
        const PAYLOAD_LEN = 1 << 5;
    }
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Command {
    /// Read.
    Read,
    /// Write the payload.
    Write,
    /// End the connection.
    Disconnect,
    /// Make answered writes durable.
    Flush,
    /// The range is not needed.
    Trim,
    /// The range will be needed.
    Cache,
    /// Write zeroes.
    WriteZeroes,
    /// Where there is data.
    BlockStatus,
    /// A number that is not known.
    Unknown(u16),
}

impl Command {
    fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Disconnect,
            3 => Self::Flush,
            4 => Self::Trim,
            5 => Self::Cache,
            6 => Self::WriteZeroes,
            7 => Self::BlockStatus,
            number => Self::Unknown(number),
        }
    }

    fn number(self) -> u16 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Disconnect => 2,
            Self::Flush => 3,
            Self::Trim => 4,
            Self::Cache => 5,
            Self::WriteZeroes => 6,
            Self::BlockStatus => 7,
            Self::Unknown(number) => number,
        }
    }
}

/// The header of a request; a payload may follow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// Its verb.
    pub command: Command,
    /// Its flags; unknown ones are kept, for the server to refuse.
    pub flags: CommandFlags,
    /// A number of the client's choice, repeated in the answer.
    pub cookie: u64,
    /// Where it begins.
    pub offset: u64,
    /// The length of the range; that of the payload with [`CommandFlags::PAYLOAD_LEN`].
    pub length: u64,
}

impl Request {
    /// The length of the payload behind the header.
    pub fn payload(&self, dialect: Dialect) -> u64 {
        let has_one = match dialect {
            Dialect::Simple | Dialect::Structured => self.command == Command::Write,
            Dialect::Extended => self.flags.contains(CommandFlags::PAYLOAD_LEN),
        };
        if has_one { self.length } else { 0 }
    }

    /// Appends the header. With classic headers the length must fit into 32 bits.
    pub fn encode(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let short = match dialect {
            Dialect::Extended => None,
            Dialect::Simple | Dialect::Structured => {
                Some(u32::try_from(self.length).map_err(|_| ProtocolError::TooLong {
                    what: "length of a request",
                    length: self.length,
                    limit: u32::MAX.into(),
                })?)
            }
        };
        let magic = if short.is_some() { REQUEST_MAGIC } else { EXTENDED_REQUEST_MAGIC };
        out.extend_from_slice(&magic.to_be_bytes());
        out.extend_from_slice(&self.flags.bits().to_be_bytes());
        out.extend_from_slice(&self.command.number().to_be_bytes());
        out.extend_from_slice(&self.cookie.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        match short {
            Some(length) => out.extend_from_slice(&length.to_be_bytes()),
            None => out.extend_from_slice(&self.length.to_be_bytes()),
        }
        Ok(())
    }

    /// From the first [`Dialect::request_length`] bytes.
    pub fn decode(dialect: Dialect, bytes: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(bytes, "request");
        let magic = at.u32()?;
        let extended = dialect == Dialect::Extended;
        at.magic(magic, if extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC })?;
        Ok(Self {
            flags: CommandFlags::from_bits_retain(at.u16()?),
            command: Command::from_number(at.u16()?),
            cookie: at.u64()?,
            offset: at.u64()?,
            length: if extended { at.u64()? } else { at.u32()?.into() },
        })
    }
}

/// The payload of a block status request: which contexts are wanted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StatusFilter {
    /// The length of the range.
    pub length: u64,
    /// Numbers of contexts.
    pub contexts: Vec<u32>,
}

impl StatusFilter {
    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.length.to_be_bytes());
        for context in &self.contexts {
            out.extend_from_slice(&context.to_be_bytes());
        }
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(payload, "wanted contexts of a block status");
        let length = at.u64()?;
        let mut contexts = Vec::new();
        while at.left() > 0 {
            contexts.push(at.u32()?);
        }
        Ok(Self { length, contexts })
    }
}

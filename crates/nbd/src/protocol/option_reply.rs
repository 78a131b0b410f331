//! Answers to options.

use std::fmt;

use super::cursor::{Cursor, length, put_counted_text, put_text, text};
use super::{BlockSizes, Export, InfoKind, OptionCode, ProtocolError};

const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// The length of the header of an answer to an option.
pub const OPTION_REPLY_HEADER: usize = 20;

const ACK: u32 = 1;
const SERVER: u32 = 2;
const INFO: u32 = 3;
const META_CONTEXT: u32 = 4;
/// Set in the kind of every error.
const ERROR: u32 = 1 << 31;

/// An information on an export.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Info {
    /// Size and abilities.
    Export(Export),
    /// The name that the server uses.
    Name(String),
    /// Words for people.
    Description(String),
    /// Sizes and addresses of requests.
    BlockSize(BlockSizes),
    /// An information of another kind, to be ignored.
    Unknown(InfoKind),
}

/// The reason why an option failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OptionError(u32);

impl OptionError {
    /// The option is not known.
    pub const UNSUPPORTED: Self = Self(1);
    /// The option is not permitted.
    pub const POLICY: Self = Self(2);
    /// The option makes no sense.
    pub const INVALID: Self = Self(3);
    /// The system of the server cannot do it.
    pub const PLATFORM: Self = Self(4);
    /// The connection must be encrypted first.
    pub const TLS_REQUIRED: Self = Self(5);
    /// There is no such export.
    pub const UNKNOWN: Self = Self(6);
    /// The server shuts down.
    pub const SHUTDOWN: Self = Self(7);
    /// The client must ask for block sizes and obey.
    pub const BLOCK_SIZE_REQUIRED: Self = Self(8);
    /// The request or its answer is too large.
    pub const TOO_BIG: Self = Self(9);
    /// Extended headers must be, or are, in use.
    pub const EXTENDED_HEADERS_REQUIRED: Self = Self(10);
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::UNSUPPORTED => "not supported by the server",
            Self::POLICY => "not permitted by the server",
            Self::INVALID => "invalid for the server",
            Self::PLATFORM => "not possible on the server's system",
            Self::TLS_REQUIRED => "the server demands TLS",
            Self::UNKNOWN => "no such export",
            Self::SHUTDOWN => "the server shuts down",
            Self::BLOCK_SIZE_REQUIRED => "the server demands that block sizes are asked for",
            Self::TOO_BIG => "too large for the server",
            Self::EXTENDED_HEADERS_REQUIRED => "the server demands extended headers",
            Self(number) => return write!(f, "error {number} of the server"),
        })
    }
}

/// The header of an answer to an option; its data follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OptionReplyHeader {
    /// The option that is answered.
    pub option: OptionCode,
    /// The kind of the answer, for [`OptionReply::decode`].
    pub kind: u32,
    /// The length of its data.
    pub length: u32,
}

impl OptionReplyHeader {
    /// As bytes.
    pub fn encode(self) -> [u8; OPTION_REPLY_HEADER] {
        let mut bytes = [0; OPTION_REPLY_HEADER];
        bytes[..8].copy_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.option.0.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.kind.to_be_bytes());
        bytes[16..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8; OPTION_REPLY_HEADER]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(bytes, "answer to an option");
        let magic = at.u64()?;
        at.magic(magic, OPTION_REPLY_MAGIC)?;
        Ok(Self { option: OptionCode(at.u32()?), kind: at.u32()?, length: at.u32()? })
    }
}

/// An answer to an option. All but [`Self::Ack`] and [`Self::Error`] are followed by more.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OptionReply {
    /// Done.
    Ack,
    /// An export.
    Server {
        /// Its name.
        name: String,
        /// Words for people; may be empty.
        description: String,
    },
    /// Information on an export.
    Info(Info),
    /// A metadata context.
    MetaContext {
        /// Its number in requests and answers of this connection.
        id: u32,
        /// Its name.
        name: String,
    },
    /// The option failed.
    Error {
        /// Why.
        error: OptionError,
        /// Words for people; may be empty.
        message: String,
    },
    /// A kind that is not known and no error.
    Unknown(u32),
}

impl OptionReply {
    /// From the data behind a header.
    pub fn decode(kind: u32, data: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(data, "answer to an option");
        Ok(match kind {
            ACK => {
                at.end()?;
                Self::Ack
            }
            SERVER => {
                let name = at.counted_text("export name")?;
                Self::Server { name, description: text(at.rest(), "description of an export")? }
            }
            INFO => Self::Info(Info::decode(data)?),
            META_CONTEXT => {
                let id = at.u32()?;
                Self::MetaContext { id, name: text(at.rest(), "name of a metadata context")? }
            }
            kind if kind & ERROR != 0 => Self::Error {
                error: OptionError(kind & !ERROR),
                message: text(data, "error message")?,
            },
            kind => Self::Unknown(kind),
        })
    }

    fn kind(&self) -> u32 {
        match self {
            Self::Ack => ACK,
            Self::Server { .. } => SERVER,
            Self::Info(_) => INFO,
            Self::MetaContext { .. } => META_CONTEXT,
            Self::Error { error, .. } => error.0 | ERROR,
            Self::Unknown(kind) => *kind,
        }
    }

    /// Appends header and data, as an answer to `option`.
    pub fn encode(&self, option: OptionCode, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut data = Vec::new();
        match self {
            Self::Ack | Self::Unknown(_) => {}
            Self::Server { name, description } => {
                put_counted_text(name, "export name", &mut data)?;
                put_text(description, "description of an export", &mut data)?;
            }
            Self::Info(info) => info.encode(&mut data)?,
            Self::MetaContext { id, name } => {
                data.extend_from_slice(&id.to_be_bytes());
                put_text(name, "name of a metadata context", &mut data)?;
            }
            Self::Error { message, .. } => put_text(message, "error message", &mut data)?,
        }
        let length = length(data.len(), "answer to an option")?;
        let header = OptionReplyHeader { option, kind: self.kind(), length };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(&data);
        Ok(())
    }
}

impl Info {
    fn decode(data: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(data, "information on an export");
        let kind = InfoKind(at.u16()?);
        Ok(match kind {
            InfoKind::EXPORT => Self::Export(Export::decode(at.rest())?),
            InfoKind::NAME => Self::Name(text(at.rest(), "export name")?),
            InfoKind::DESCRIPTION => {
                Self::Description(text(at.rest(), "description of an export")?)
            }
            InfoKind::BLOCK_SIZE => Self::BlockSize(BlockSizes::decode(at.rest())?),
            kind => Self::Unknown(kind),
        })
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let kind = match self {
            Self::Export(_) => InfoKind::EXPORT,
            Self::Name(_) => InfoKind::NAME,
            Self::Description(_) => InfoKind::DESCRIPTION,
            Self::BlockSize(_) => InfoKind::BLOCK_SIZE,
            Self::Unknown(kind) => *kind,
        };
        out.extend_from_slice(&kind.0.to_be_bytes());
        match self {
            Self::Export(export) => out.extend_from_slice(&export.encode()),
            Self::Name(name) => put_text(name, "export name", out)?,
            Self::Description(text) => put_text(text, "description of an export", out)?,
            Self::BlockSize(sizes) => out.extend_from_slice(&sizes.encode()),
            Self::Unknown(_) => {}
        }
        Ok(())
    }
}

//! Options: the requests of a client before transmission.

use super::ProtocolError;
use super::cursor::{Cursor, length, put_counted_text, put_text, text};
use super::greeting::OPTION_MAGIC;

/// The length of the header of an option.
pub const OPTION_HEADER: usize = 16;

/// The kind of an information on an export.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InfoKind(pub u16);

impl InfoKind {
    /// Size and abilities.
    pub const EXPORT: Self = Self(0);
    /// The name that the server uses.
    pub const NAME: Self = Self(1);
    /// Words for people.
    pub const DESCRIPTION: Self = Self(2);
    /// Sizes and addresses of requests.
    pub const BLOCK_SIZE: Self = Self(3);
}

/// Numbers of options.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OptionCode(pub u32);

impl OptionCode {
    /// Choose an export and begin, without an answer if that fails.
    pub const EXPORT_NAME: Self = Self(1);
    /// End.
    pub const ABORT: Self = Self(2);
    /// List exports.
    pub const LIST: Self = Self(3);
    /// Encrypt what follows.
    pub const STARTTLS: Self = Self(5);
    /// Information on an export.
    pub const INFO: Self = Self(6);
    /// Choose an export and begin.
    pub const GO: Self = Self(7);
    /// Answer in chunks.
    pub const STRUCTURED_REPLY: Self = Self(8);
    /// List metadata contexts.
    pub const LIST_META_CONTEXT: Self = Self(9);
    /// Choose metadata contexts.
    pub const SET_META_CONTEXT: Self = Self(10);
    /// Headers with lengths of 64 bits.
    pub const EXTENDED_HEADERS: Self = Self(11);
}

/// The header of an option; its data follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OptionHeader {
    /// Its number.
    pub code: OptionCode,
    /// The length of its data.
    pub length: u32,
}

impl OptionHeader {
    /// As bytes.
    pub fn encode(self) -> [u8; OPTION_HEADER] {
        let mut bytes = [0; OPTION_HEADER];
        bytes[..8].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.code.0.to_be_bytes());
        bytes[12..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// From bytes.
    pub fn decode(bytes: &[u8; OPTION_HEADER]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(bytes, "option");
        let magic = at.u64()?;
        at.magic(magic, OPTION_MAGIC)?;
        Ok(Self { code: OptionCode(at.u32()?), length: at.u32()? })
    }
}

/// The export and information that a client asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct InfoRequest {
    /// The name of the export; the default export has the empty name.
    pub export: String,
    /// Wanted beside size and abilities.
    pub wanted: Vec<InfoKind>,
}

/// The metadata contexts that a client asks for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MetaContextRequest {
    /// The name of the export.
    pub export: String,
    /// Names of contexts; in lists, namespaces with a colon, too. No queries at all ask for all of
    /// them.
    pub queries: Vec<String>,
}

/// An option of a client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ClientOption {
    /// Choose this export and begin, without an answer if that fails.
    ExportName(String),
    /// End.
    Abort,
    /// List exports.
    List,
    /// Encrypt what follows.
    StartTls,
    /// Information on an export.
    Info(InfoRequest),
    /// Choose an export and begin.
    Go(InfoRequest),
    /// Answer in chunks.
    StructuredReply,
    /// List metadata contexts.
    ListMetaContext(MetaContextRequest),
    /// Choose metadata contexts.
    SetMetaContext(MetaContextRequest),
    /// Headers with lengths of 64 bits.
    ExtendedHeaders,
}

impl ClientOption {
    /// From the data behind a header; none for numbers that are not known.
    pub fn decode(code: OptionCode, data: &[u8]) -> Result<Option<Self>, ProtocolError> {
        let empty = |option| {
            Cursor::new(data, "option without data").end()?;
            Ok(Some(option))
        };
        Ok(Some(match code {
            OptionCode::EXPORT_NAME => Self::ExportName(text(data, "export name")?),
            // Data with it is to be ignored.
            OptionCode::ABORT => Self::Abort,
            OptionCode::LIST => return empty(Self::List),
            OptionCode::STARTTLS => return empty(Self::StartTls),
            OptionCode::INFO => Self::Info(InfoRequest::decode(data)?),
            OptionCode::GO => Self::Go(InfoRequest::decode(data)?),
            OptionCode::STRUCTURED_REPLY => return empty(Self::StructuredReply),
            OptionCode::LIST_META_CONTEXT => {
                Self::ListMetaContext(MetaContextRequest::decode(data)?)
            }
            OptionCode::SET_META_CONTEXT => Self::SetMetaContext(MetaContextRequest::decode(data)?),
            OptionCode::EXTENDED_HEADERS => return empty(Self::ExtendedHeaders),
            _ => return Ok(None),
        }))
    }

    /// Its number.
    pub fn code(&self) -> OptionCode {
        match self {
            Self::ExportName(_) => OptionCode::EXPORT_NAME,
            Self::Abort => OptionCode::ABORT,
            Self::List => OptionCode::LIST,
            Self::StartTls => OptionCode::STARTTLS,
            Self::Info(_) => OptionCode::INFO,
            Self::Go(_) => OptionCode::GO,
            Self::StructuredReply => OptionCode::STRUCTURED_REPLY,
            Self::ListMetaContext(_) => OptionCode::LIST_META_CONTEXT,
            Self::SetMetaContext(_) => OptionCode::SET_META_CONTEXT,
            Self::ExtendedHeaders => OptionCode::EXTENDED_HEADERS,
        }
    }

    /// Appends header and data.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        let mut data = Vec::new();
        match self {
            Self::ExportName(name) => put_text(name, "export name", &mut data)?,
            Self::Info(request) | Self::Go(request) => request.encode(&mut data)?,
            Self::ListMetaContext(request) | Self::SetMetaContext(request) => {
                request.encode(&mut data)?;
            }
            Self::Abort
            | Self::List
            | Self::StartTls
            | Self::StructuredReply
            | Self::ExtendedHeaders => {}
        }
        let header = OptionHeader { code: self.code(), length: length(data.len(), "option data")? };
        out.extend_from_slice(&header.encode());
        out.extend_from_slice(&data);
        Ok(())
    }
}

impl InfoRequest {
    fn decode(data: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(data, "information request");
        let export = at.counted_text("export name")?;
        let count = at.u16()?;
        let wanted = (0..count).map(|_| at.u16().map(InfoKind)).collect::<Result<_, _>>()?;
        at.end()?;
        Ok(Self { export, wanted })
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        put_counted_text(&self.export, "export name", out)?;
        let count = u16::try_from(self.wanted.len()).map_err(|_| ProtocolError::TooLong {
            what: "information requests",
            length: self.wanted.len() as u64,
            limit: u16::MAX.into(),
        })?;
        out.extend_from_slice(&count.to_be_bytes());
        for kind in &self.wanted {
            out.extend_from_slice(&kind.0.to_be_bytes());
        }
        Ok(())
    }
}

impl MetaContextRequest {
    fn decode(data: &[u8]) -> Result<Self, ProtocolError> {
        let mut at = Cursor::new(data, "metadata contexts");
        let export = at.counted_text("export name")?;
        let count = at.u32()?;
        // Each query takes bytes of the message, so the count alone allocates nothing.
        let mut queries = Vec::new();
        for _ in 0..count {
            queries.push(at.counted_text("query of metadata contexts")?);
        }
        at.end()?;
        Ok(Self { export, queries })
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
        put_counted_text(&self.export, "export name", out)?;
        out.extend_from_slice(&length(self.queries.len(), "queries")?.to_be_bytes());
        for query in &self.queries {
            put_counted_text(query, "query of metadata contexts", out)?;
        }
        Ok(())
    }
}

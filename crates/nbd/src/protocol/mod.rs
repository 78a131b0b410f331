//! Messages of the NBD protocol as bytes, for both sides, without I/O.
//!
//! Text: `doc/proto.md` and `doc/uri.md` of NetworkBlockDevice/nbd, and the branch
//! `extension-ext-header` of the same. Old-style handshakes are not spoken.
//!
//! Everything that decodes answers with a value or a [`ProtocolError`] on any bytes, and allocates no
//! more than those bytes need. What has a fixed length is an array; [`ReplyHeader::decode`] says when
//! more bytes are needed. The caller bounds what it reads for a length that the other side has sent
//! ([`MAX_OPTION_DATA`], [`MAX_STRING`], the payload limit of the export).
//!
//! ```
//! use undercroft_nbd::protocol::{Command, CommandFlags, Dialect, Request};
//!
//! let request = Request {
//!     command: Command::Read,
//!     flags: CommandFlags::empty(),
//!     cookie: 7,
//!     offset: 4096,
//!     length: 512,
//! };
//! let mut bytes = Vec::new();
//! request.encode(Dialect::Extended, &mut bytes)?;
//! assert_eq!(bytes.len(), Dialect::Extended.request_length());
//! assert_eq!(Request::decode(Dialect::Extended, &bytes)?, request);
//! # Ok::<(), undercroft_nbd::protocol::ProtocolError>(())
//! ```

mod cursor;
mod defect;
mod export;
mod greeting;
mod option;
mod option_reply;
mod reply;
mod request;
mod status;
#[cfg(test)]
mod tests;
mod uri;
mod wire_error;

pub use defect::ProtocolError;
pub use export::{BlockSizes, Export, TransmissionFlags};
pub use greeting::{ClientFlags, Greeting, HandshakeFlags};
pub use option::{
    ClientOption, InfoKind, InfoRequest, MetaContextRequest, OPTION_HEADER, OptionCode,
    OptionHeader,
};
pub use option_reply::{Info, OPTION_REPLY_HEADER, OptionError, OptionReply, OptionReplyHeader};
pub use reply::{ChunkHeader, ChunkKind, ErrorChunk, Hole, ReplyFlags, ReplyHeader, SimpleReply};
pub use request::{Command, CommandFlags, Dialect, Request, StatusFilter};
pub use status::{AllocationFlags, StatusChunk, StatusExtent};
pub use uri::{Transport, Uri, UriError};
pub use wire_error::WireError;

/// The port that IANA has reserved for NBD.
pub const DEFAULT_PORT: u16 = 10809;
/// The length that no string (name, context, message) may exceed, in bytes.
pub const MAX_STRING: usize = 4096;
/// Option data up to this length is worth decoding: a name and some contexts.
pub const MAX_OPTION_DATA: u32 = 1 << 16;
/// A payload that neither side takes for an attack, in bytes.
pub const PORTABLE_PAYLOAD: u32 = 1 << 25;
/// Extents that one status chunk should not exceed.
pub const MAX_STATUS_EXTENTS: usize = 1 << 20;
/// The metadata context that every server of sparse devices has.
pub const BASE_ALLOCATION: &str = "base:allocation";
/// A context of our own that is none: behind it a client names itself as the only one that changes the
/// export from now on. Servers of others pass over what they do not know.
pub const WRITER: &str = "undercroft:writer=";

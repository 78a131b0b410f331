//! Defects of messages.

use thiserror::Error;

/// Bytes that are not the message they should be.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The message ends inside of a field.
    #[error("{what}: the message is too short")]
    Short {
        /// The message or field.
        what: &'static str,
    },
    /// Bytes follow where the message should end.
    #[error("{what}: {left} bytes too many")]
    Trailing {
        /// The message.
        what: &'static str,
        /// Bytes left over.
        left: usize,
    },
    /// Another magic number.
    #[error("{what}: wrong magic number {found:#x}")]
    Magic {
        /// The message.
        what: &'static str,
        /// The number that stands there.
        found: u64,
    },
    /// A length above the limit.
    #[error("{what}: {length} is more than {limit}")]
    TooLong {
        /// The field.
        what: &'static str,
        /// The length that stands there.
        length: u64,
        /// The most that is permitted.
        limit: u64,
    },
    /// The greeting of a server that has one export without a name, and no options.
    #[error(
        "an oldstyle greeting, which is not spoken here; start the server in the newstyle (nbdkit \
         --newstyle, qemu-nbd --export-name=NAME)"
    )]
    OldStyle,
    /// A string that is not UTF-8 or has a NUL.
    #[error("{what}: not UTF-8 text without NUL")]
    Text {
        /// The field.
        what: &'static str,
    },
    /// A number that is not permitted there.
    #[error("{what}: the value {found} is not permitted")]
    Value {
        /// The field.
        what: &'static str,
        /// The number that stands there.
        found: u64,
    },
}

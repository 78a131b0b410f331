//! Why an export cannot be used.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::protocol::{OptionError, ProtocolError, UriError};

/// Why an export cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URI is wrong.
    #[error("{uri}: {source}")]
    Uri {
        /// The URI.
        uri: String,
        /// The fault.
        source: UriError,
    },
    /// A parameter of the URI has a value that it cannot have.
    #[error("{uri}: {name}={value}: {wanted}")]
    Parameter {
        /// The URI.
        uri: String,
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What would be right.
        wanted: &'static str,
    },
    /// A parameter of the URI is not known here.
    #[error("{uri}: unknown parameter {name}; known are x-connections, x-timeout and x-unflushed")]
    UnknownParameter {
        /// The URI.
        uri: String,
        /// The parameter.
        name: String,
    },
    /// The server cannot be reached.
    #[error("cannot connect to {uri}: {source}")]
    Connect {
        /// The export.
        uri: String,
        /// Answer of the operating system.
        source: io::Error,
    },
    /// The connection broke, or had no answer in time, before the export could be used.
    #[error("the server of {uri} does not answer: {source}")]
    Handshake {
        /// The export.
        uri: String,
        /// Answer of the operating system.
        source: io::Error,
    },
    /// What answers is no NBD server, or a broken one.
    #[error("the server of {uri} does not keep to the protocol: {source}")]
    Protocol {
        /// The export.
        uri: String,
        /// The defect of its answer.
        source: ProtocolError,
    },
    /// The server can do too little.
    #[error("the server of {uri} cannot {what}; this client needs that")]
    Unable {
        /// The export.
        uri: String,
        /// What it cannot do.
        what: &'static str,
    },
    /// The server refused an option.
    #[error("the server of {uri} refused to {action}: {error}{}", remark(.message))]
    Refused {
        /// The export.
        uri: String,
        /// What was asked.
        action: &'static str,
        /// Why not.
        error: OptionError,
        /// Words of the server.
        message: String,
    },
    /// A certificate or key cannot be used.
    #[error("{}: {problem}", path.display())]
    Certificate {
        /// The file or directory.
        path: PathBuf,
        /// The fault, and its remedy.
        problem: String,
    },
    /// TLS cannot be agreed on.
    #[error("no TLS with the server of {uri}: {problem}")]
    Tls {
        /// The export.
        uri: String,
        /// The fault.
        problem: String,
    },
    /// The export is to be changed and cannot be.
    #[error("{uri} is read-only; export it for writing")]
    ReadOnly {
        /// The export.
        uri: String,
    },
    /// The export has changed while there was no connection.
    #[error("{uri} has changed: {what}; open it anew when that is right")]
    Changed {
        /// The export.
        uri: String,
        /// The difference.
        what: String,
    },
    /// The server does not take writes again that it may have lost.
    #[error(
        "the server of {uri} refuses writes that it had taken before, so they may be lost: {problem}"
    )]
    Lost {
        /// The export.
        uri: String,
        /// Its answer.
        problem: String,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread for {uri}: {source}")]
    Thread {
        /// The export.
        uri: String,
        /// Answer of the operating system.
        source: io::Error,
    },
}

impl ClientError {
    /// Whether it is no use to try again.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Changed { .. } | Self::Lost { .. })
    }
}

/// Words of a server, as they can go to a terminal.
fn remark(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(" ({})", message.escape_debug()) }
}

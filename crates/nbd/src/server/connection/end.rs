//! Why a connection ends.

use std::io;

use thiserror::Error;

use crate::protocol::ProtocolError;

/// The end of a connection.
#[derive(Debug, Error)]
pub(crate) enum End {
    /// The client is done.
    #[error("the client ended it")]
    Client,
    /// The server stops.
    #[error("the server stops")]
    Stopped,
    /// Nothing came or went for the time that is permitted.
    #[error("nothing came or went for the idle time")]
    Idle,
    /// No export was chosen in time.
    #[error("no export was chosen in time")]
    Slow,
    /// What the client sent is not the protocol.
    #[error("not the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// The client does what a server must end the connection for.
    #[error("{0}")]
    Violation(&'static str),
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl End {
    /// Whether nothing is wrong with it.
    pub(crate) fn is_orderly(&self) -> bool {
        matches!(self, Self::Client | Self::Stopped)
    }
}

//! Why a device has ended.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::protocol::WireError;

/// Why a device has ended.
#[derive(Clone, Debug, Error)]
pub(crate) enum EndReason {
    /// A request had no answer in time.
    #[error(
        "no answer from the server of {device} for {}{}{}",
        seconds(*.limit), because(.why), lost(*.unflushed)
    )]
    NoAnswer { device: String, limit: Duration, why: String, unflushed: usize },
    /// The server does not flush.
    #[error(
        "the server of {device} cannot flush what it has taken ({error}), so it may be lost; \
         look at the server, then open the volume anew"
    )]
    NotFlushed { device: String, error: WireError },
    /// There is a server again, and it is of no use.
    #[error("{0}")]
    Refused(Arc<str>),
}

impl EndReason {
    pub(crate) fn to_error(&self) -> io::Error {
        let kind = match self {
            Self::NoAnswer { .. } => io::ErrorKind::TimedOut,
            Self::NotFlushed { .. } | Self::Refused(_) => io::ErrorKind::Other,
        };
        io::Error::new(kind, self.clone())
    }
}

fn seconds(limit: Duration) -> String {
    if limit.subsec_millis() == 0 {
        format!("{} s", limit.as_secs())
    } else {
        format!("{} ms", limit.as_millis())
    }
}

fn because(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(" ({why})") }
}

fn lost(unflushed: usize) -> String {
    match unflushed {
        0 => String::new(),
        1 => "; a write that it had not flushed may be lost".to_owned(),
        number => format!("; {number} writes that it had not flushed may be lost"),
    }
}

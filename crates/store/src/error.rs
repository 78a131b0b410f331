//! Why something in a store cannot be read or written.

use crate::digest::Digest;
use crate::manifest::ManifestError;
use std::io;
use thiserror::Error;

/// Why something in a store cannot be read or written.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A text names nothing in a store.
    #[error("{text}: {why}")]
    Location {
        /// The text.
        text: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// The store cannot be used as it is configured.
    #[error("cannot use the store of {uri}: {why}")]
    Configuration {
        /// What was to be opened.
        uri: String,
        /// What is missing or wrong.
        why: String,
    },
    /// A request failed, after all that could be tried again.
    #[error("cannot {action} {object}: {fault}")]
    Request {
        /// What was asked for: `read`, `write`, `list` or `delete`.
        action: &'static str,
        /// The object or the prefix.
        object: String,
        /// Why.
        fault: Fault,
    },
    /// An object is not the one any more that was opened.
    #[error("{object} was changed while it is read; open it anew")]
    Changed {
        /// The object.
        object: String,
    },
    /// A store sent other bytes than it said.
    #[error("{object}: {expected} bytes were asked for, {found} came")]
    Length {
        /// The object.
        object: String,
        /// Bytes that were to come.
        expected: u64,
        /// Bytes that came.
        found: u64,
    },
    /// What has the name of a manifest is none.
    #[error("{object}: {error}")]
    Manifest {
        /// The object.
        object: String,
        /// Why.
        error: ManifestError,
    },
    /// A manifest names a chunk that is not there.
    #[error("chunk {digest} is missing: {object}")]
    MissingChunk {
        /// Its content.
        digest: Digest,
        /// Where it should be.
        object: String,
    },
    /// An object has the name of a chunk and other bytes.
    #[error("chunk {digest} was altered ({why}): {object}")]
    AlteredChunk {
        /// What its content should be.
        digest: Digest,
        /// How that was seen.
        why: String,
        /// Where it is.
        object: String,
    },
    /// An image in a store is only read.
    #[error(
        "{uri} is only read; `undercroft fetch` makes a file that can be changed, `undercroft publish` \
         publishes it again"
    )]
    ReadOnly {
        /// The image.
        uri: String,
    },
    /// Another publication has moved the name meanwhile.
    #[error(
        "{name} was published by another one meanwhile and stays as that left it; the image is \
         @sha256:{digest}, publish it again to move the name"
    )]
    Lost {
        /// The name.
        name: String,
        /// The manifest that has no name now.
        digest: Digest,
    },
    /// Chunks are being published or removed.
    #[error(
        "{what} is under way at {prefix} for {since} ({marker}); one that was killed stops to count \
         after {hours} hours, or delete the marker"
    )]
    Busy {
        /// `a publication` or `a prune`.
        what: &'static str,
        /// The prefix.
        prefix: String,
        /// For how long, by the clock of the store.
        since: String,
        /// Its marker.
        marker: String,
        /// How long a marker counts.
        hours: u64,
    },
    /// The image cannot be read that is to be published, or something of this machine fails.
    #[error("{what}: {why}")]
    Local {
        /// What was done.
        what: String,
        /// Why it failed.
        why: String,
    },
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// There is no such object.
    #[error("there is no such object")]
    Missing,
    /// The store does not let these credentials do it, or has expired them.
    #[error(
        "the store refuses it ({0}); credentials are taken from the variables of its own tools, such as \
         AWS_ACCESS_KEY_ID, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME"
    )]
    Refused(String),
    /// There is one already, or it is another one than was expected.
    #[error("it was changed by another")]
    Conflict,
    /// Anything else, in the words of the store.
    #[error("{0}")]
    Other(String),
}

impl StoreError {
    /// The error of a request for an object.
    pub(crate) fn request(action: &'static str, object: &str, error: &object_store::Error) -> Self {
        Self::Request { action, object: object.to_owned(), fault: Fault::of(error) }
    }

    pub(crate) fn local(what: impl Into<String>, why: &impl ToString) -> Self {
        Self::Local { what: what.into(), why: why.to_string() }
    }

    /// Whether it says that there is no such object.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self, Self::Request { fault: Fault::Missing, .. })
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        Self::other(error)
    }
}

impl Fault {
    fn of(error: &object_store::Error) -> Self {
        use object_store::Error as E;
        match error {
            E::NotFound { .. } => Self::Missing,
            E::AlreadyExists { .. } | E::Precondition { .. } => Self::Conflict,
            E::PermissionDenied { source, .. } | E::Unauthenticated { source, .. } => {
                Self::Refused(short(&source.to_string()))
            }
            error => Self::Other(innermost(error)),
        }
    }
}

/// The chain of an error without what it says twice.
fn innermost(error: &object_store::Error) -> String {
    let mut text = short(&error.to_string());
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let more = short(&next.to_string());
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

/// One line of bounded length: servers answer with whole documents.
fn short(text: &str) -> String {
    const MOST: usize = 300;
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > MOST {
        let end = (0..=MOST).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        line.truncate(end);
        line.push_str(" ...");
    }
    line
}

//! What happens to the legs of a mirror.

use std::fmt;
use std::sync::Arc;

use crate::bio::BlockError;

/// Something that the owner of a mirror should hear of. Displays as one line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum MirrorEvent {
    /// A leg failed and is not used any more.
    Dropped {
        /// Name of the leg.
        leg: Arc<str>,
        /// The error it failed with.
        error: BlockError,
    },
    /// A leg could not be read; another is asked. The leg stays in use.
    ReadFailed {
        /// Name of the leg.
        leg: Arc<str>,
        /// The error it failed with.
        error: BlockError,
    },
    /// A leg has the data of the others again.
    Resynchronised {
        /// Name of the leg.
        leg: Arc<str>,
    },
}

impl fmt::Display for MirrorEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped { leg, error } => {
                write!(f, "{leg} was dropped from its mirror: {error}")
            }
            Self::ReadFailed { leg, error } => {
                write!(f, "{leg} could not be read, another leg is: {error}")
            }
            Self::Resynchronised { leg } => write!(f, "{leg} is up to date in its mirror"),
        }
    }
}

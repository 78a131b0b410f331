//! What keeps an image from being opened, as those know it who know its bytes alone.

use crate::error::ContainerError;
use std::io;
use std::path::Path;

/// What keeps an image from being opened.
#[derive(Debug)]
pub(crate) enum Obstacle {
    /// The file cannot be read.
    Read(io::Error),
    /// A field that cannot be.
    Damaged(String),
    /// Something that is not read here.
    NotSupported(String),
    /// What is compressed is no disk.
    Holds(&'static str),
    /// Another file is in the way, by which everything is known already.
    Other(ContainerError),
}

impl Obstacle {
    /// The same, of a file that holds this kind of image.
    pub(crate) fn of(self, path: &Path, kind: &'static str) -> ContainerError {
        let path = path.to_owned();
        match self {
            Self::Read(source) if source.kind() == io::ErrorKind::InvalidData => {
                ContainerError::Damaged { path, kind, what: source.to_string() }
            }
            Self::Read(source) => ContainerError::Open { path, source },
            Self::Damaged(what) => ContainerError::Damaged { path, kind, what },
            Self::NotSupported(what) => ContainerError::NotSupported { path, kind, what },
            Self::Holds(found) => ContainerError::Holds { path, kind, found },
            Self::Other(error) => error,
        }
    }
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// A field that cannot be.
pub(crate) fn damaged<T>(what: impl Into<String>) -> Result<T, Obstacle> {
    Err(Obstacle::Damaged(what.into()))
}

/// Something that is not read here.
pub(crate) fn not_supported<T>(what: impl Into<String>) -> Result<T, Obstacle> {
    Err(Obstacle::NotSupported(what.into()))
}

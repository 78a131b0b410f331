//! Errors of verbs that take paths.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use thiserror::Error;
use undercroft_xfs::ops::path_text;
use undercroft_xfs::{Error, ErrorKind};

/// Why something failed, and at which path, in one message.
#[derive(Debug, Error)]
#[error("{}", self.text())]
pub struct PathError {
    path: PathBuf,
    error: Error,
}

impl PathError {
    /// The path as it was given, or as it was found on a walk. Empty if none was known.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What programs tell errors apart by.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.error.kind()
    }

    /// What went wrong.
    #[must_use]
    pub const fn error(&self) -> &Error {
        &self.error
    }

    /// What went wrong, without the path.
    #[must_use]
    pub fn into_error(self) -> Error {
        self.error
    }

    pub(crate) fn new(path: &[u8], error: Error) -> Self {
        let path_of = || path_text(path);
        // These name their subject; here it is the whole path.
        let error = match error {
            Error::NotFound(_) => Error::NotFound(path_of()),
            // It was removed between two steps on the way.
            Error::Stale { .. } => Error::NotFound(path_of()),
            Error::Exists(_) => Error::Exists(path_of()),
            Error::NotEmpty(_) => Error::NotEmpty(path_of()),
            Error::Loop(_) => Error::Loop(path_of()),
            mut other => {
                if let Error::WrongKind { path, .. } = &mut other {
                    *path = path_of();
                }
                other
            }
        };
        Self { path: OsStr::from_bytes(path).into(), error }
    }

    fn text(&self) -> String {
        let names_it = matches!(
            self.error,
            Error::NotFound(_)
                | Error::Exists(_)
                | Error::NotEmpty(_)
                | Error::Loop(_)
                | Error::WrongKind { .. }
        );
        if names_it || self.path.as_os_str().is_empty() {
            return self.error.to_string();
        }
        format!("{}: {}", path_text(self.path.as_os_str().as_bytes()), self.error)
    }
}

/// For programs that mix both kinds of verbs: there is no path.
impl From<Error> for PathError {
    fn from(error: Error) -> Self {
        Self { path: PathBuf::new(), error }
    }
}

/// For callers that only look at the cause.
impl From<PathError> for Error {
    fn from(error: PathError) -> Self {
        error.error
    }
}

/// Keeps the message. The kind is the nearest that the standard library has.
impl From<PathError> for io::Error {
    fn from(error: PathError) -> Self {
        Self::new(error.error().io_kind(), error)
    }
}

/// Says at which path something failed.
pub(crate) trait At<T> {
    fn at(self, path: &[u8]) -> Result<T, PathError>;
}

impl<T> At<T> for Result<T, Error> {
    fn at(self, path: &[u8]) -> Result<T, PathError> {
        self.map_err(|error| PathError::new(path, error))
    }
}

//! Errors of verbs that take paths.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use thiserror::Error;
use undercroft_xfs::ops::path_text;
use undercroft_xfs::{Error, ErrorKind};

/// Why something failed, and at which path, in one message.
#[derive(Debug, Error)]
#[error("{}", self.text())]
pub struct PathError {
    path: Box<Path>,
    error: Error,
    link: Option<Box<Path>>,
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

    /// The last symbolic link that was followed on the way to what failed, if there was one.
    #[must_use]
    pub fn link(&self) -> Option<&Path> {
        self.link.as_deref()
    }

    /// An error of the file at a path: of a verb by number, say, to which a path has led.
    #[must_use]
    pub fn new(path: impl AsRef<Path>, error: Error) -> Self {
        Self::of(path.as_ref().as_os_str().as_bytes(), error)
    }

    pub(crate) fn of(path: &[u8], error: Error) -> Self {
        Self::on_way(path, path, None, error)
    }

    /// An error on the way that a path leads: at `culprit`, to which the link has led.
    pub(crate) fn on_way(path: &[u8], culprit: &[u8], link: Option<&[u8]>, error: Error) -> Self {
        let as_path = |bytes| Path::new(OsStr::from_bytes(bytes)).into();
        let link = link.filter(|link| *link != culprit).map(as_path);
        Self { path: as_path(path), error: named(error, culprit), link }
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
        let text = |path: &Path| path_text(path.as_os_str().as_bytes());
        let mut about = self.error.to_string();
        if !self.path.as_os_str().is_empty() && (!names_it || self.link.is_some()) {
            about = format!("{}: {about}", text(&self.path));
        }
        match &self.link {
            Some(link) => format!("{about}; the link {} leads there", text(link)),
            None => about,
        }
    }
}

/// An error that names its subject, of the file at this path.
fn named(error: Error, path: &[u8]) -> Error {
    let path_of = || path_text(path);
    match error {
        // If stale, it was removed between two steps on the way.
        Error::NotFound(_) | Error::Stale { .. } => Error::NotFound(path_of()),
        Error::Exists(_) => Error::Exists(path_of()),
        Error::NotEmpty(_) => Error::NotEmpty(path_of()),
        Error::Loop(_) => Error::Loop(path_of()),
        Error::WrongKind { what, kind, .. } => Error::WrongKind { path: path_of(), what, kind },
        other => other,
    }
}

/// For programs that mix both kinds of verbs: there is no path.
impl From<Error> for PathError {
    fn from(error: Error) -> Self {
        Self { path: Path::new("").into(), error, link: None }
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
        self.map_err(|error| PathError::of(path, error))
    }
}

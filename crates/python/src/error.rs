//! Errors as exceptions: `OSError` with a number, from which Python takes the class (`FileNotFoundError`).

use std::error::Error as _;
use std::io;

use pyo3::PyErr;
use pyo3::exceptions::{PyOSError, PyValueError};
use thiserror::Error;
use undercroft_block::stack::StackError;
use undercroft_container::LayerError;
use undercroft_fs::{Error as VolumeError, ErrorKind, ImageError, PathError};

/// Why a call failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// A value that cannot be.
    #[error("{0}")]
    Value(String),
    /// The description of the device, or a file in it.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// What is in the disk.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// There is no such volume in the disk.
    #[error("{0}")]
    NoVolume(String),
    /// A volume was not opened or made.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The volume, or a file by its number.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// A file by its path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Removed files cannot be looked for.
    #[error(transparent)]
    Recover(#[from] undercroft_recover::RecoverError),
    /// The device of a file of Python was not started.
    #[error(transparent)]
    Device(#[from] undercroft_block::OpenError),
}

/// The number of an error that the operating system made, in it or below.
fn errno_below(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut at = Some(error);
    while let Some(error) = at {
        let own = error.downcast_ref::<io::Error>();
        if let Some(number) = own.and_then(io::Error::raw_os_error) {
            return Some(number);
        }
        at = error.source();
    }
    None
}

impl Failure {
    fn errno(&self) -> i32 {
        let kind = match self {
            Self::Volume(error) | Self::Image(ImageError::Volume(error)) => error.kind(),
            Self::Path(error) => error.kind(),
            Self::NoVolume(_) => ErrorKind::Invalid,
            Self::Value(_)
            | Self::Stack(_)
            | Self::Layer(_)
            | Self::Image(_)
            | Self::Recover(_)
            | Self::Device(_) => {
                return errno_below(self).unwrap_or_else(|| ErrorKind::Io.errno());
            }
        };
        kind.errno()
    }

    /// The text with what is below it.
    fn text(&self) -> String {
        let mut text = self.to_string();
        let mut below = self.source();
        while let Some(error) = below {
            let more = error.to_string();
            if !text.ends_with(&more) {
                text = format!("{text}: {more}");
            }
            below = error.source();
        }
        text
    }
}

/// A failure as an exception.
pub(crate) fn failed(failure: impl Into<Failure>) -> PyErr {
    match failure.into() {
        Failure::Value(what) => PyValueError::new_err(what),
        failure => PyOSError::new_err((failure.errno(), failure.text())),
    }
}

//! The reason why a judge could not be asked, and its output when it found fault.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A judge that could not be asked, or its complaint.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is not installed.
    #[error("{program} is missing; {remedy}")]
    Missing {
        /// The program's name or path.
        program: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A program ran and failed for a reason that is not a verdict.
    #[error("`{command}` ended with {status}:\n{output}")]
    Failed {
        /// The command line.
        command: String,
        /// The exit status in words.
        status: String,
        /// Everything it printed.
        output: String,
    },
    /// A judge looked at a volume and found fault with it.
    #[error("{0}")]
    Complaint(Report),
    /// A system call failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The action that failed, as "cannot ...".
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl Error {
    /// An [`Error::Io`] for use in `map_err`.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source: source.into() }
    }
}

/// The output of a judge about a volume that it does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The command line, which a person can repeat.
    pub command: String,
    /// The exit status in words.
    pub status: String,
    /// The lines that name a fault, in order; empty when only the exit status tells.
    pub complaints: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` ended with {}", self.command, self.status)?;
        for line in &self.complaints {
            write!(formatter, "\n  {line}")?;
        }
        Ok(())
    }
}

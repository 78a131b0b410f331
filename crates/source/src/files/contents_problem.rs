//! What is wrong with a file that has the contents of an entry.

use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// Why an entry of a description cannot be completed from its file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsProblem {
    /// Neither the description nor a file says the mode.
    #[error("\"{}\" has no mode; write mode=, or a line such as \"/set mode=0644\" before it", path.escape_ascii())]
    NoMode {
        /// The entry.
        path: Vec<u8>,
    },
    /// A file of contents cannot be opened.
    #[error("\"{}\" has the contents of {}: {source}; check the directory of contents", path.escape_ascii(), file.display())]
    Unreadable {
        /// The entry.
        path: Vec<u8>,
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file of contents is something else.
    #[error("\"{}\" has the contents of {}, where there is no {wanted}, or a symbolic link on the way, which is not followed", path.escape_ascii(), file.display())]
    NotThere {
        /// The entry.
        path: Vec<u8>,
        /// The file.
        file: PathBuf,
        /// What should be there.
        wanted: &'static str,
    },
    /// Contents have another length than the description says.
    #[error("\"{}\" has {expected} bytes by its description, and its contents have {found}; contents and description are not of one tree", path.escape_ascii())]
    Size {
        /// The file.
        path: Vec<u8>,
        /// Bytes by the description.
        expected: u64,
        /// Bytes there are.
        found: u64,
    },
    /// Contents have another digest than the description says.
    #[error("\"{}\" has the {algorithm} digest {found}, and its description says {expected}; the contents are damaged, or not of this tree", path.escape_ascii())]
    Digest {
        /// The file.
        path: Vec<u8>,
        /// How it is computed.
        algorithm: &'static str,
        /// The digest in the description.
        expected: String,
        /// That of the contents.
        found: String,
    },
}

impl ContentsProblem {
    /// Why contents cannot be had from a file.
    pub(crate) fn of(path: Vec<u8>, file: PathBuf, error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::ISDIR => {
                Self::NotThere { path, file, wanted: "regular file" }
            }
            error => Self::Unreadable { path, file, source: error.into() },
        }
    }
}

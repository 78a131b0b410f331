//! Errors of files of this system.

use crate::{EntryPath, SourceError};
use std::io;
use std::path::PathBuf;

/// Why a file or directory of this system cannot be packed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file or directory cannot be read.
    #[error("cannot {action} {path}: {source}; run as a user who may, or leave it out")]
    Read {
        /// The action that failed: "open", "list", "read" and so on.
        action: &'static str,
        /// Path relative to the source.
        path: EntryPath,
        /// Why it failed.
        source: io::Error,
    },
    /// A file ended before the size it had when it was opened.
    #[error(
        "{path} shrank while it was read: it had {expected} bytes when opened and ended after {found}; stop what writes to it and build again"
    )]
    Shrank {
        /// Path relative to the source.
        path: EntryPath,
        /// Size when opened, in bytes.
        expected: u64,
        /// Where its end was found, in bytes.
        found: u64,
    },
    /// A file went on after the size it had when it was opened.
    #[error(
        "{path} grew while it was read: it had {expected} bytes when opened and now has at least {found}; stop what writes to it and build again"
    )]
    Grew {
        /// Path relative to the source.
        path: EntryPath,
        /// Size when opened, in bytes.
        expected: u64,
        /// How far it reaches now at least, in bytes.
        found: u64,
    },
    /// A name was removed or became something else between listing its directory and opening it.
    #[error(
        "{path} was removed or replaced while the tree was read; stop what writes to it and build again"
    )]
    Replaced {
        /// Path relative to the source.
        path: EntryPath,
    },
    /// A symbolic link's target is longer than can be stored.
    #[error(
        "the symbolic link {path} has a target of {length} bytes, the most is {}; leave it out",
        crate::entry::MAX_SYMLINK_TARGET
    )]
    SymlinkTarget {
        /// Path relative to the source.
        path: EntryPath,
        /// Bytes in the target.
        length: usize,
    },
    /// A sparse file is in more pieces than are kept track of.
    #[error(
        "{path} has more than {} separate data ranges; copy it with fewer holes (cp --sparse=never) or leave it out",
        crate::entry::MAX_DATA_RANGES
    )]
    Fragmented {
        /// Path relative to the source.
        path: EntryPath,
    },
    /// The tree nests deeper than paths can say.
    #[error("a path below {path} is longer than {} bytes; leave it out", crate::entry::MAX_PATH)]
    PathLength {
        /// The directory whose entries' paths are too long.
        path: EntryPath,
    },
    /// Owners and devices are those that fakeroot makes up, in a library that is not asked here: the
    /// system is called without it.
    #[error(
        "{}: owners and devices that fakeroot (FAKEROOTKEY is set) makes up are not seen in a directory; have tar read it and take the stream (tar -C DIR -c . to standard output), or leave FAKEROOTKEY out (env -u FAKEROOTKEY) if the real ones will do",
        path.display()
    )]
    Fakeroot {
        /// The directory.
        path: PathBuf,
    },
    /// A reading thread ended without a result; its own message is on standard error.
    #[error("a thread that reads the directory ended unexpectedly; its message tells why")]
    ThreadEnded,
}

impl From<FileError> for SourceError {
    fn from(error: FileError) -> Self {
        Self::Fault(Box::new(error))
    }
}

impl FileError {
    /// A failed system call on an entry that its directory listed.
    pub(crate) fn read(action: &'static str, path: &EntryPath, error: rustix::io::Errno) -> Self {
        let path = path.clone();
        match error {
            rustix::io::Errno::NOENT => Self::Replaced { path },
            error => Self::Read { action, path, source: error.into() },
        }
    }

    /// The same, for `map_err`.
    pub(crate) fn reading(
        action: &'static str,
        path: &EntryPath,
    ) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |error| Self::read(action, path, error)
    }
}

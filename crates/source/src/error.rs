//! Errors of any source.

use std::error::Error;
use std::io;
use std::path::PathBuf;

/// Why a source cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The directory or archive does not open.
    #[error("cannot open the source {}: {source}{}", path.display(), remedy(source))]
    Open {
        /// The path to be opened.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// An exclude pattern is no valid glob.
    #[error("exclude pattern {pattern:?} is not a valid glob: {source}")]
    Pattern {
        /// The pattern as it was given.
        pattern: String,
        /// The defect of the pattern.
        source: globset::Error,
    },
    /// A stream could not be kept for the second pass.
    #[error("cannot keep a copy of {archive} in {}: {source}; make room there or choose another temporary directory", directory.display())]
    Spool {
        /// The archive that was copied.
        archive: String,
        /// Where the copy was to be.
        directory: PathBuf,
        /// Why that failed.
        source: io::Error,
    },
    /// The reading threads could not be started.
    #[error("cannot start a thread to read ahead: {0}; raise the limit on processes")]
    Thread(io::Error),
    /// A scan was asked for after entries had been read, or a second time.
    #[error("the source can be scanned once, before its first entry is read")]
    ScanTooLate,
    /// A restart was asked for without a scan that came to its end.
    #[error("the source can be read again only after it was scanned")]
    NotScanned,
    /// What is wrong with a source of its kind, by the error of that kind: of a directory
    /// ([`FileError`](crate::FileError)), an archive ([`TarError`](crate::tar::TarError)), rules, or a
    /// source of another crate.
    #[error(transparent)]
    Fault(Box<dyn Error + Send + Sync>),
    /// An archive that is to be sorted has more entries than can be counted.
    #[error("the archive has more than {} entries, which cannot be sorted", u32::MAX)]
    Entries,
}

/// What to do about a source that does not open; of what this program cannot do, the cause tells.
fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::Unsupported => "",
        _ => "; check that it exists and that you may read it",
    }
}

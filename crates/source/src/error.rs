//! Errors of opening a source.

use crate::description::DescriptionError;
use crate::directory::DirectoryError;
use crate::oci::ImageError;
use crate::rules::RuleError;
use crate::tar::TarError;
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
    /// The directory is an image in a form that is not read.
    #[error(
        "{} is a container image as skopeo keeps it in dir:, which is not read; make a layout of it (skopeo copy dir:DIR oci:LAYOUT), or take its files as they are with dir:{}",
        path.display(), path.display()
    )]
    SkopeoDirectory {
        /// The directory.
        path: PathBuf,
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
    /// A directory tree cannot be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A description is wrong, or does not fit its contents.
    #[error(transparent)]
    Description(#[from] Box<DescriptionError>),
    /// Contents were named for a source that has its own.
    #[error(
        "{0} has contents of its own; --contents is for descriptions: mtree:FILE, composefs:FILE or proto:FILE"
    )]
    NoDescription(String),
    /// A container image is damaged, or not the one that is wanted.
    #[error(transparent)]
    Image(#[from] Box<ImageError>),
    /// A source is no container image, and should be one.
    #[error(
        "{0} is no container image; name one by oci:DIR, oci-archive:FILE or docker-archive:FILE"
    )]
    NotAnImage(String),
    /// An archive is damaged, or holds what cannot be packed.
    #[error(transparent)]
    Tar(#[from] Box<TarError>),
    /// A volume, which is a source of another crate, cannot be read.
    #[error(transparent)]
    Volume(Box<dyn Error + Send + Sync>),
    /// An archive that is to be sorted has more entries than can be counted.
    #[error("the archive has more than {} entries, which cannot be sorted", u32::MAX)]
    Entries,
    /// Rules are wrong, or do not fit the tree.
    #[error(transparent)]
    Rule(Box<RuleError>),
}

impl From<RuleError> for SourceError {
    fn from(error: RuleError) -> Self {
        Self::Rule(Box::new(error))
    }
}

/// What to do about a source that does not open; of what this program cannot do, the cause tells.
fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::Unsupported => "",
        _ => "; check that it exists and that you may read it",
    }
}

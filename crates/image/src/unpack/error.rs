//! Why a volume could not be unpacked.

use std::io;
use std::path::PathBuf;
use thiserror::Error;
use undercroft_source::entry::MAX_PATH;
use undercroft_xfs::Error as VolumeError;
use undercroft_xfs::units::InodeNumber;

/// Why a volume could not be unpacked. Files unpacked before stay. Paths are escaped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// The volume is damaged, or its device failed.
    #[error("cannot read {path} of the volume")]
    Volume {
        /// Path in the volume.
        path: String,
        /// The cause.
        source: VolumeError,
    },

    /// A name that no file can have.
    #[error(
        "the volume has the name {name:?} in {directory}, which would lead elsewhere; it is damaged \
         or made to deceive"
    )]
    Name {
        /// The directory.
        directory: String,
        /// The name.
        name: String,
    },

    /// A name twice in one directory.
    #[error(
        "the volume has the name {name:?} twice in {directory}; it is damaged or made to deceive"
    )]
    Duplicate {
        /// The directory.
        directory: String,
        /// The name.
        name: String,
    },

    /// A directory with two names.
    #[error("{path} leads back to directory {inode}; the volume is damaged")]
    Repeated {
        /// Its second name.
        path: String,
        /// Its inode.
        inode: InodeNumber,
    },

    /// A file with more names than it says.
    #[error(
        "{path} is one more name of inode {inode} than the inode counts; the volume is damaged"
    )]
    Links {
        /// The name too many.
        path: String,
        /// The inode.
        inode: InodeNumber,
    },

    /// A path that is longer than those of sources may be.
    #[error("{path} has {length} bytes, more than the {} that are compared or described", MAX_PATH)]
    PathLength {
        /// The path, cut off.
        path: String,
        /// Its length.
        length: usize,
    },

    /// The destination cannot be used.
    #[error("cannot open the destination {}; it must be a directory that you may write to", path.display())]
    Destination {
        /// The destination.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },

    /// The destination holds something.
    #[error("the destination {} is not empty; choose another one", .0.display())]
    NotEmpty(PathBuf),

    /// Something in the destination cannot be made.
    #[error("cannot {action} {path}")]
    Create {
        /// The action that failed.
        action: &'static str,
        /// Path below the destination.
        path: String,
        /// The error of the system.
        source: io::Error,
    },

    /// A file that is larger than files may be there.
    #[error(
        "{path} was not extracted: it has {size} bytes, more than a file in the destination may have; \
         choose a destination on another file system, or raise the limit on the sizes of files"
    )]
    TooLarge {
        /// Path below the destination.
        path: String,
        /// Its size.
        size: u64,
    },

    /// A directory of the destination is no longer where it was.
    #[error(
        "the parent of {path} was moved while the volume was unpacked; keep others out of the destination"
    )]
    Moved {
        /// Path below the destination.
        path: String,
    },

    /// No thread can be had.
    #[error("cannot start a thread; raise the limit on processes (ulimit -u)")]
    Thread(#[source] io::Error),

    /// The entries cannot be read.
    #[error(transparent)]
    Source(#[from] undercroft_source::SourceError),

    /// The stream cannot be written.
    #[error("cannot write the archive")]
    Output(#[from] io::Error),
}

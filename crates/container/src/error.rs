//! Why the disk in a file cannot be opened.

use std::io;
use std::path::PathBuf;
use thiserror::Error;
use undercroft_block::OpenError;

/// Why the disk in a file cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The file cannot be opened or read.
    #[error("cannot open {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is in use, or no device can be made of it.
    #[error(transparent)]
    Device(#[from] OpenError),
    /// A structure in the file cannot be.
    #[error("{} is a damaged {kind} image: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The format, such as `qcow2`.
        kind: &'static str,
        /// The structure and its fault.
        what: String,
    },
    /// The file has something that is not read here.
    #[error(
        "{} is a {kind} image with {what}, which is not read; `qemu-img convert -O raw` makes a raw image of it",
        path.display()
    )]
    NotSupported {
        /// The file.
        path: PathBuf,
        /// The format, such as `qcow2`.
        kind: &'static str,
        /// What it has.
        what: String,
    },
    /// The file is to be changed, and its format is only read.
    #[error(
        "{} is a {kind} image, which is only read; `undercroft convert` makes a raw or qcow2 image of it",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The format, such as `vmdk`.
        kind: &'static str,
    },
    /// A part of the disk is in another file, which nobody has allowed to be read.
    #[error(
        "{} has {part} in another file, \"{}\", and that is read only when it is allowed",
        path.display(), named.escape_debug()
    )]
    Named {
        /// The file.
        path: PathBuf,
        /// What is in the other.
        part: &'static str,
        /// The name of the other, as it is in the image.
        named: String,
    },
    /// The file names another one at a place that is not opened.
    #[error(
        "{} has {part} in \"{}\", which is not in its directory or below; move both into one",
        path.display(), named.escape_debug()
    )]
    Elsewhere {
        /// The file.
        path: PathBuf,
        /// What is in the other.
        part: &'static str,
        /// The name of the other, as it is in the image.
        named: String,
    },
    /// Too many files are below each other.
    #[error("{} has the changes to an image, and so on, more than {most} deep or in a circle", path.display())]
    TooDeep {
        /// The first file.
        path: PathBuf,
        /// Files that may be below each other.
        most: usize,
    },
}

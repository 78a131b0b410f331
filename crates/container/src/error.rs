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
        "{} is a {kind} image with {what}, which is not read; `{}` makes a raw image of it",
        path.display(), way(kind)
    )]
    NotSupported {
        /// The file.
        path: PathBuf,
        /// The format, such as `qcow2`.
        kind: &'static str,
        /// What it has.
        what: String,
    },
    /// What is compressed is not the bytes of a disk.
    #[error(
        "{} is {found} compressed with {kind}, and no raw disk; decompress it to a file, and name that",
        path.display()
    )]
    Holds {
        /// The file.
        path: PathBuf,
        /// The compression, such as `xz`.
        kind: &'static str,
        /// What it is, with its article.
        found: &'static str,
    },
    /// There is no such snapshot in the image.
    #[error("{} has no snapshot \"{}\"{}", path.display(), name.escape_debug(), listed(names))]
    NoSnapshot {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// Those that there are.
        names: Vec<String>,
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
    /// A snapshot is to be changed.
    #[error("a snapshot in {} is only read; `undercroft convert` makes an image of it", path.display())]
    Past {
        /// The file.
        path: PathBuf,
    },
    /// A part of the disk is in another file, which was not allowed to be read.
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

/// The program that makes raw images of those that are not read here.
fn way(kind: &str) -> &str {
    match kind {
        "gzip" => "gzip --decompress",
        "xz" => "xz --decompress",
        "zstd" => "zstd --decompress",
        _ => "qemu-img convert -O raw",
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "; only qcow2 images may have some".to_owned();
    }
    let names: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("; there are {}", names.join(", "))
}

//! Why devices cannot be stacked.

use std::error::Error;
use std::path::PathBuf;

use thiserror::Error;

use crate::driver::OpenError;

/// Why devices cannot be stacked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StackError {
    /// There are no legs.
    #[error("a stacked device needs at least one leg")]
    NoLegs,
    /// Together they would have more sectors than a device can.
    #[error("the legs together are larger than a device can be (8 EiB)")]
    TooLarge,
    /// The chunks of a stripe do not fit.
    #[error(
        "chunks of {chunk} bytes; they must be a power of two from 4 KiB to 1 GiB and a multiple of the {block} bytes of a block of the legs"
    )]
    Chunk {
        /// Bytes of a chunk.
        chunk: u64,
        /// Largest block of a leg in bytes.
        block: u64,
    },
    /// There are more legs than a mirror can have.
    #[error("{count} legs; a mirror has at most {most}")]
    TooManyLegs {
        /// Legs given.
        count: usize,
        /// Legs allowed.
        most: usize,
    },
    /// A delay cannot be understood.
    #[error(
        "{text:?} is no delay; write a latency of at most an hour and, if it is limited, how many bytes a second, such as 2ms or 20ms,100M"
    )]
    Slowness {
        /// The text.
        text: Box<str>,
    },
    /// No leg holds the contents.
    #[error("all legs of the mirror are stale; one must hold the contents")]
    AllStale,
    /// A leg that is to be filled has no room for the data of the others.
    #[error(
        "{leg} has {found} bytes, the other legs of the mirror {needed}; make it that long first"
    )]
    ShortLeg {
        /// Name of the leg.
        leg: Box<str>,
        /// Its length in bytes.
        found: u64,
        /// What the smallest of the others has.
        needed: u64,
    },
    /// The changes of an overlay would not fit.
    #[error("{changes} has {found} bytes, the device below it {needed}; make it that long first")]
    ShortChanges {
        /// Name of the device of the changes.
        changes: Box<str>,
        /// Its length in bytes.
        found: u64,
        /// That of the device below the overlay.
        needed: u64,
    },
    /// A file at the bottom cannot be opened.
    #[error(transparent)]
    File(#[from] OpenError),
    /// The disk in a file of a format of its own cannot be opened.
    #[error(transparent)]
    Container(Box<dyn Error + Send + Sync>),
    /// A device behind a network cannot be opened.
    #[error(transparent)]
    Network(Box<dyn Error + Send + Sync>),
    /// This program cannot open devices behind a network.
    #[error("cannot open {uri}: this program has no client for it")]
    NoClient {
        /// The device.
        uri: Box<str>,
    },
    /// A file has another length than the description says.
    #[error("{} has {found} bytes, the description says {expected}", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        found: u64,
        /// What the description says.
        expected: u64,
    },
    /// One file or device is there twice.
    #[error("{} is in the device more than once; give each part another", path.display())]
    Twice {
        /// The file or device, by the second of its names.
        path: PathBuf,
    },
}

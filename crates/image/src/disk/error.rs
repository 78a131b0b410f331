//! Why a disk could not be made.

use super::PartitionKind;
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use undercroft_block::BlockError;
use undercroft_block::partition::{GPT_ENTRIES, GPT_NAME_MAX};

/// Why a disk could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DiskError {
    /// No partition, or more than one, is to hold the volume.
    #[error(
        "{0} partitions hold the volume, one must: write xfs for its content, such as root:xfs"
    )]
    Volumes(usize),
    /// Systems would take the first of them.
    #[error(
        "partitions {first} and {second} are both {kind}, and a system would start from the first; \
         give one of them another type, such as linux"
    )]
    TwoRoots {
        /// Number of the first.
        first: usize,
        /// Number of the second.
        second: usize,
        /// Their kind.
        kind: PartitionKind,
    },
    /// The table has no entry for it.
    #[error("{0} partitions, a table has room for {GPT_ENTRIES}")]
    TooMany(usize),
    /// The table has no room for the name.
    #[error(
        "partition {number}: its name has {units} units of UTF-16, a table has room for {GPT_NAME_MAX}"
    )]
    LongName {
        /// Number of the partition.
        number: usize,
        /// Length of the name.
        units: usize,
    },
    /// Two partitions of one identity.
    #[error(
        "partitions {first} and {second} have the same uuid; leave it out, and each gets one of its own"
    )]
    SameId {
        /// Number of the first.
        first: usize,
        /// Number of the second.
        second: usize,
    },
    /// The lengths add up to more than a disk can have.
    #[error("the partitions are longer than any disk")]
    TooLarge,
    /// The length of the volume is an option of its own.
    #[error(
        "partition {0} holds the volume: its size is that of the volume, and is not given with the partition"
    )]
    SizeOfVolume(usize),
    /// A block device is as long as it is.
    #[error("the disk is a block device of {fixed} bytes, not {size}; leave the size out")]
    SizeOfDevice {
        /// The length that was asked for.
        size: u64,
        /// Its length.
        fixed: u64,
    },
    /// The disk ends before a partition does.
    #[error(
        "partition {number} ({name}) takes {length} bytes from {start} on, and the disk has {disk}; \
         all partitions need a disk of at least {needed} bytes"
    )]
    DoesNotFit {
        /// Its number.
        number: usize,
        /// Its name.
        name: String,
        /// Its length.
        length: u64,
        /// Where it would start.
        start: u64,
        /// Bytes of the disk.
        disk: u64,
        /// Bytes that the disk would need.
        needed: u64,
    },
    /// The content is longer than the partition may be.
    #[error("{}: has {length} bytes, its partition {number} of size={size} is too small", path.display())]
    TooSmall {
        /// The content.
        path: PathBuf,
        /// Its length.
        length: u64,
        /// Number of the partition.
        number: usize,
        /// Length that the partition was given.
        size: u64,
    },
    /// A file system cannot hold its files in the size that it was given.
    #[error(
        "{}: a FAT file system of {size} bytes is too small for it (partition {number}); it needs {needed}",
        path.display()
    )]
    FatTooSmall {
        /// The directory.
        path: PathBuf,
        /// Number of the partition.
        number: usize,
        /// Length that it was given.
        size: u64,
        /// Length that is enough.
        needed: u64,
    },
    /// More than a FAT file system can hold or address.
    #[error("{}: {what}", path.display())]
    Fat {
        /// The file or directory.
        path: PathBuf,
        /// What cannot be.
        what: String,
    },
    /// Firmware would not find a file system.
    #[error(
        "{}: is no FAT image, which partition {number} ({kind}) must be; name a directory to have one made",
        path.display()
    )]
    NotFat {
        /// The file.
        path: PathBuf,
        /// Number of the partition.
        number: usize,
        /// What it is for.
        kind: PartitionKind,
    },
    /// Only FAT is made from a directory.
    #[error(
        "{}: is a directory, from which partition {number} ({kind}) is not made; build an image of it \
         first (undercroft build), and name that",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Number of the partition.
        number: usize,
        /// What it is for.
        kind: PartitionKind,
    },
    /// The bytes of the content are not those that it stands for.
    #[error("{}: is {what}; its bytes are not those of its disk: convert it to a raw one first", path.display())]
    Container {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The content is no file.
    #[error("{}: is {what}; a partition is made from a regular file or a block device", path.display())]
    WrongSource {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Swap space has a header and pages.
    #[error(
        "partition {number} has {size} bytes; swap space takes {} at least",
        super::swap::LEAST
    )]
    SwapTooSmall {
        /// Number of the partition.
        number: usize,
        /// Its length.
        size: u64,
    },
    /// A partition without bytes.
    #[error("partition {0} is empty; give it a size")]
    Empty(usize),
    /// A source cannot be read.
    #[error("cannot {action} {}", path.display())]
    Source {
        /// The action that failed.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A source has not the length that it had at first.
    #[error("{}: had {expected} bytes, {found} were read: it changed meanwhile", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Its length at first.
        expected: u64,
        /// Bytes that were read.
        found: u64,
    },
    /// The disk cannot be written.
    #[error("cannot write the disk")]
    Device(#[from] BlockError),
}

impl DiskError {
    /// Whether the options cannot go together, whatever the files hold.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Volumes(_)
                | Self::TwoRoots { .. }
                | Self::TooMany(_)
                | Self::LongName { .. }
                | Self::SameId { .. }
                | Self::TooLarge
                | Self::SizeOfVolume(_)
                | Self::SizeOfDevice { .. }
                | Self::SwapTooSmall { .. }
                | Self::Empty(_)
        )
    }
}

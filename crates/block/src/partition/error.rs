//! Why partitions cannot be found or opened.

use thiserror::Error;

use crate::bio::BlockError;
use crate::units::Sector;

/// Why a partition cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The device failed.
    #[error("cannot read the partition table")]
    Device(#[from] BlockError),
    /// There is no table.
    #[error("{device} has no partition table (GPT or MBR); leave the partition number out")]
    NoTable {
        /// Name of the device.
        device: String,
    },
    /// There is a GPT, but neither of its copies is sound.
    #[error("the GPT of {device} is damaged: {what}; give the byte offset of the volume instead")]
    Damaged {
        /// Name of the device.
        device: String,
        /// The defect of the first copy found.
        what: String,
    },
    /// There is no partition of that number.
    #[error("{device} has no partition {number}; it has {present}")]
    NoPartition {
        /// Name of the device.
        device: String,
        /// The number asked for.
        number: u32,
        /// The numbers there are.
        present: String,
    },
    /// Its entry cannot be changed.
    #[error(
        "the entry of partition {number} of {device} cannot be changed: {what}; a partitioning \
         program may"
    )]
    Unchangeable {
        /// Name of the device.
        device: String,
        /// The partition.
        number: u32,
        /// The reason.
        what: String,
    },
    /// The partition leaves the device.
    #[error(
        "partition {number} of {device} takes {length} sectors from {start}, the device has \
         {capacity}; is the image truncated?"
    )]
    Outside {
        /// Name of the device.
        device: String,
        /// The partition.
        number: u32,
        /// Its first sector.
        start: Sector,
        /// Its length.
        length: Sector,
        /// Sectors of the device.
        capacity: Sector,
    },
}

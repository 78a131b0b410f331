//! Why what is on a device cannot be made a device.

use thiserror::Error;
use undercroft_block::BlockError;
use undercroft_block::partition::PartitionError;
use undercroft_block::stack::StackError;

/// Why what is on a device cannot be made a device.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LayerError {
    /// A device failed.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// A partition cannot be opened.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// Devices cannot be stacked.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A structure cannot be.
    #[error("{what} on {device} is damaged: {fault}")]
    Damaged {
        /// The structure, such as `the volume group "vg"`.
        what: String,
        /// The device.
        device: String,
        /// What cannot be.
        fault: String,
    },
    /// Something that is not read here.
    #[error("{what} is {kind}, which is not read; {way}")]
    NotSupported {
        /// The thing.
        what: String,
        /// Its kind.
        kind: String,
        /// The way to its contents.
        way: &'static str,
    },
    /// It is encrypted, and there is no key.
    #[error("{device} is encrypted with LUKS, and there is no key")]
    Locked {
        /// The device.
        device: String,
    },
    /// It is encrypted, and no key fits.
    #[error(
        "no key that was given opens one of the {slots} key slots of the LUKS container on {device}"
    )]
    WrongKey {
        /// The device.
        device: String,
        /// Slots that were tried.
        slots: usize,
    },
    /// Parts are not there.
    #[error("{what} needs {missing}; {way}")]
    Missing {
        /// The thing.
        what: String,
        /// What is not there.
        missing: String,
        /// The way to have them.
        way: &'static str,
    },
}

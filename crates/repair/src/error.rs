//! Why a volume could not be put right.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use undercroft_block::{BlockError, OpenError};
use undercroft_recover::RecoverError;
use undercroft_xfs::units::AgNumber;

/// Why a volume could not be put right. Nothing of it was changed, but where an error of the device says
/// otherwise.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] BlockError),

    /// The system refused what is needed to read the device.
    #[error(transparent)]
    Open(#[from] OpenError),

    /// The engine refused a step.
    #[error(transparent)]
    Engine(#[from] undercroft_xfs::Error),

    /// The remains of the volume could not be looked through.
    #[error(transparent)]
    Remains(#[from] RecoverError),

    /// No superblock and no copy of one is left.
    #[error(
        "no copy of the superblock is left, so the sizes of the volume are not known; `undercroft salvage` \
         gets files out of it"
    )]
    NoSuperblock,

    /// The volume has something that cannot be put right here.
    #[error("{0}")]
    NotSupported(String),

    /// The volume is damaged, and has to be repaired first.
    #[error("the volume has {count} faults, the first: {first}; `undercroft repair` comes first")]
    Damaged {
        /// Faults.
        count: u64,
        /// The first of them.
        first: String,
    },

    /// Features cannot be changed.
    #[error("{}", .0.join("; "))]
    Refused(Vec<String>),

    /// Groups have no room for what their trees may become.
    #[error(
        "{groups} allocation groups have too little free space for trees that may grow: {bytes} bytes in all, \
         {most} of them in group {worst}; remove or move files there"
    )]
    NoRoom {
        /// Groups.
        groups: usize,
        /// Bytes that they lack.
        bytes: u64,
        /// The group that lacks most.
        worst: AgNumber,
        /// Bytes that it lacks.
        most: u64,
    },

    /// There is no place for a journal.
    #[error(
        "a new journal needs {bytes} bytes of free space side by side, and there are {longest}; `undercroft \
         grow` by {grow} bytes makes room, or fewer files"
    )]
    NoJournal {
        /// Bytes of the shortest journal.
        bytes: u64,
        /// Bytes of the longest free extent.
        longest: u64,
        /// Bytes to grow the volume by.
        grow: u64,
    },

    /// What would be left is still not sound.
    #[error(
        "the repair would leave {count} faults, so nothing was changed; the first: {first}; `undercroft \
         salvage` gets the files out, and xfs_repair on a copy may do more"
    )]
    NotSound {
        /// Faults.
        count: u64,
        /// The first of them.
        first: String,
    },

    /// The device is shorter than the volume, and there is something behind its end.
    #[error(
        "the device ends at byte {end}, and the volume at {needed}; `undercroft salvage` gets out what is \
         there"
    )]
    Short {
        /// Bytes of the device.
        end: u64,
        /// Bytes of the volume.
        needed: u64,
    },

    /// The changes do not fit the journal, and nothing else would save a repair that is cut.
    #[error(
        "the repair changes {bytes} bytes and cannot be one transaction of the journal, which is too short or \
         damaged itself, or there are sectors that cannot be read: an undo file is needed, so that a repair that is cut can be taken back (--undo FILE)"
    )]
    NeedsUndo {
        /// Bytes.
        bytes: usize,
    },

    /// An undo file cannot be used.
    #[error("{path}: {what}", path = path.display())]
    Undo {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },

    /// A file failed.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

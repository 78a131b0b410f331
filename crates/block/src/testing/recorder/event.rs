//! The events that a recorder keeps.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::thread::ThreadId;

use crate::bio::Operation;
use crate::units::Sector;

/// Something that happened, in the order of all.
#[derive(Clone, Debug)]
pub enum Event {
    /// A bio that changes the disk, or a flush, was submitted.
    Submitted {
        /// Its number: bios count from 0 in the order of submission.
        number: u64,
        /// Its change.
        change: Change,
    },
    /// A bio was answered.
    Completed {
        /// Its number.
        number: u64,
        /// Whether it succeeded.
        succeeded: bool,
    },
    /// The test called [`Recorder::mark`](super::Recorder::mark).
    Mark(Arc<str>),
}

/// The change that a bio makes to the disk.
#[derive(Clone)]
pub struct Change {
    /// Never a read.
    pub operation: Operation,
    /// Whether it is durable when it is answered.
    pub force_unit_access: bool,
    /// First sector.
    pub sector: Sector,
    /// In bytes; 0 for a flush.
    pub length: u64,
    /// The bytes of a write.
    pub data: Option<Arc<[u8]>>,
    /// The thread that submitted it.
    pub thread: ThreadId,
}

impl Change {
    /// The sectors that it covers.
    #[must_use]
    pub fn sectors(&self) -> Range<Sector> {
        self.sector..Sector(self.sector.0 + Sector::covering(self.length).0)
    }

    /// Bytes that it takes in a recording.
    pub(super) fn memory(&self) -> u64 {
        self.data.as_ref().map_or(0, |data| data.len() as u64)
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let forced = if self.force_unit_access { ", durable" } else { "" };
        let Self { operation, sector, length, .. } = self;
        write!(f, "{operation} of {length} bytes at sector {sector}{forced}")
    }
}

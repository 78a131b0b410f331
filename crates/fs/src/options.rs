//! How a file system is opened.

use crate::clock::Clock;
use undercroft_xfs::volume::LiveOptions;

/// The reads that set the time of access of their file. A time of access is kept in memory and
/// stored with other changes: it is never a write of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessTimes {
    /// None.
    Never,
    /// Reads of files that were changed since they were read last, or not read for a day, as Linux
    /// does.
    #[default]
    Relative,
    /// All.
    Always,
}

/// How a file system is opened. By default it is read, and its journal is replayed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenOptions {
    /// It may be changed, through its journal.
    pub writable: bool,
    /// The journal of a volume that was not unmounted counts: it is replayed, in memory if the
    /// volume is only read. Without this such a volume is seen as it happens to be on the device,
    /// and is not opened for change.
    pub replay: bool,
    /// Where times of changes come from.
    pub clock: Clock,
    /// Which reads set times of access.
    pub access_times: AccessTimes,
    /// Sizes for a volume that may be changed.
    pub live: LiveOptions,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            writable: false,
            replay: true,
            clock: Clock::default(),
            access_times: AccessTimes::default(),
            live: LiveOptions::default(),
        }
    }
}

impl OpenOptions {
    /// To read.
    #[must_use]
    pub fn read_only() -> Self {
        Self::default()
    }

    /// To read and change.
    #[must_use]
    pub fn writable() -> Self {
        Self { writable: true, ..Self::default() }
    }

    /// Leaves the journal alone.
    #[must_use]
    pub fn without_replay(self) -> Self {
        Self { replay: false, ..self }
    }

    /// Takes times from this clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Sets times of access by this rule.
    #[must_use]
    pub fn with_access_times(self, access_times: AccessTimes) -> Self {
        Self { access_times, ..self }
    }
}

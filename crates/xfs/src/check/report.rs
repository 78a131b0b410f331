//! The result of a check.

use crate::log::LogState;

/// Summary of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Errors found, those beyond the limit of the options included.
    pub errors: u64,
    /// Warnings, likewise.
    pub warnings: u64,
    /// State of the journal. If it is dirty, counters of the superblock, unlinked inodes and blocks
    /// set aside for copy-on-write are not judged, and any other finding may go away when it is
    /// replayed.
    pub log: LogState,
    /// Whether everything could be looked at. If not, errors say why, and what could not be seen
    /// was not judged.
    pub complete: bool,
    /// Inodes in use.
    pub inodes: u64,
    /// Directories among them.
    pub directories: u64,
    /// Bytes of metadata read.
    pub bytes: u64,
}

impl Report {
    /// Whether nothing is wrong with the volume.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.errors == 0 && self.complete
    }
}

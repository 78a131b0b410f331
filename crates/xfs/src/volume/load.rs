//! How much of a volume is in memory, and on its way to the device.

use super::Volume;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What an open volume has in memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Data of files that is newer in memory than on the device.
    pub dirty_data: u64,
    /// Buffers of metadata.
    pub buffers: u64,
    /// Those of them that are newer than their places on the device. What was committed and synced
    /// of them is in the journal.
    pub dirty_buffers: u64,
    /// Size of the journal; 0 if nothing goes through it.
    pub journal: u64,
    /// Bytes of it that recovery would need.
    pub journal_used: u64,
}

impl Volume {
    /// What the volume has in memory now.
    #[must_use]
    pub fn load(&self) -> Load {
        let (journal, free) = self.journal().map_or((0, 0), |journal| journal.space());
        Load {
            dirty_data: self.dirty_bytes(),
            buffers: self.cache.total_bytes.load(Ordering::Relaxed) as u64,
            dirty_buffers: self.cache.dirty_bytes.load(Ordering::Relaxed) as u64,
            journal: journal as u64,
            journal_used: journal.saturating_sub(free) as u64,
        }
    }

    /// Why every change is refused, if something failed behind which nothing can be relied upon, or
    /// the volume was closed.
    #[must_use]
    pub fn refusal(&self) -> Option<Arc<str>> {
        self.poison.reason()
    }
}

//! Work of the threads that read, in the order in which its results are delivered.

use super::handle::Handle;
use crate::description::Described;
use crate::{Entry, EntryPath, SourceError};
use rustix::fs::FileType;
use std::sync::Arc;

/// Most entries in a batch: enough that taking one costs nothing per entry, few enough that threads
/// share the work of a small tree.
pub(crate) const BATCH_ENTRIES: usize = 64;

/// Consecutive entries.
pub(crate) struct Batch {
    /// Place of the first entry in the order of all.
    pub(crate) order: u64,
    pub(crate) work: Vec<Work>,
    /// What ends the work after these entries.
    pub(crate) error: Option<SourceError>,
}

/// One entry.
pub(crate) enum Work {
    /// An entry that is complete, and no file.
    Entry(Entry),
    /// Something in a directory that is still to be looked at; no directory itself.
    Other { directory: Arc<Handle>, path: EntryPath, kind: FileType },
    /// An entry that a description tells of, with the file that has the rest.
    Described(Box<Described>),
}

/// All work of a pass. One thread at a time takes a batch.
pub(crate) trait Batches: Send {
    /// The next entries, or `None` after the last. An error is the last thing to come.
    fn next_batch(&mut self) -> Option<Batch>;
}

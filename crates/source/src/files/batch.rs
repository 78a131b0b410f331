//! Work of the threads that read, in the order in which its results are delivered.

use super::handle::Handle;
use super::partial_entry::PartialEntry;
use crate::{Entry, EntryPath, SourceError};
use rustix::fs::FileType;
use std::sync::Arc;

/// Most entries in a batch: enough that taking one costs nothing per entry, few enough that threads
/// share the work of a small tree.
const BATCH_ENTRIES: usize = 64;

/// Most entries in a batch without data of a large tree: to hand one over costs as much as to look at
/// a dozen files.
const LARGEST_BATCH: usize = 512;

/// Most entries in the next batch, behind as many as `order` says.
pub(crate) fn batch_entries(order: u64, with_data: bool) -> usize {
    if with_data {
        return BATCH_ENTRIES;
    }
    usize::try_from(order / 16).unwrap_or(usize::MAX).clamp(BATCH_ENTRIES, LARGEST_BATCH)
}

/// Most directories in a batch; each can keep a file descriptor open.
pub(crate) const BATCH_DIRECTORIES: usize = 16;

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
    /// An entry of which a part is said, with the file that has the rest.
    Partial(Box<PartialEntry>),
}

impl Work {
    /// The directory in which something is still to be looked at.
    fn directory(&self) -> Option<&Arc<Handle>> {
        match self {
            Self::Entry(_) => None,
            Self::Other { directory, .. } => Some(directory),
            Self::Partial(partial) => partial.directory(),
        }
    }
}

/// The way through a list of entries.
#[derive(Default)]
pub(crate) struct Course {
    next: usize,
    failed: bool,
}

impl Course {
    /// The next batch of `count` entries; `work` says what is to be done for one.
    pub(crate) fn next_batch(
        &mut self,
        count: usize,
        with_data: bool,
        mut work: impl FnMut(usize) -> Result<Work, SourceError>,
    ) -> Option<Batch> {
        let mut batch = Batch { order: self.next as u64, work: Vec::new(), error: None };
        let (mut directories, mut last) = (0, None);
        let most = batch_entries(batch.order, with_data);
        while !self.failed
            && self.next < count
            && batch.work.len() < most
            && directories < BATCH_DIRECTORIES
        {
            match work(self.next) {
                Ok(work) => {
                    if let Some(directory) = work.directory().map(Arc::as_ptr)
                        && last.replace(directory) != Some(directory)
                    {
                        directories += 1;
                    }
                    batch.work.push(work);
                    self.next += 1;
                }
                Err(error) => {
                    self.failed = true;
                    batch.error = Some(error);
                }
            }
        }
        (!batch.work.is_empty() || batch.error.is_some()).then_some(batch)
    }
}

/// All work of a pass. One thread at a time takes a batch.
pub(crate) trait Batches: Send {
    /// The next entries, or `None` after the last. An error is the last thing to come. Those of a pass
    /// with data are fewer at a time.
    fn next_batch(&mut self, with_data: bool) -> Option<Batch>;
}

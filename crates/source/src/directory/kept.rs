//! What a scan saw, for the pass behind it: an entry without data is not looked up again, and no
//! directory is listed again.
//!
//! Only so much is kept as takes little memory. Of a larger tree nothing is, and it is walked again.

use super::DirectoryError;
use super::batch::{BATCH_ENTRIES, Batch, Batches, Work};
use super::handle::Handle;
use super::walk::{BATCH_DIRECTORIES, OPEN_LEVELS};
use crate::{Entry, EntryPath, Kind};
use rustix::fs::FileType;
use std::sync::Arc;

/// Most bytes that are kept: some 200,000 names.
const MOST_BYTES: usize = 32 << 20;

/// An entry that was seen.
enum Known {
    /// One without data, as it was.
    Whole(Entry),
    /// A file that is to be read.
    File(EntryPath),
}

/// The entries of a tree, in their order.
#[derive(Default)]
pub(super) struct Kept(Vec<Known>);

/// Entries that are being kept.
pub(super) struct Keeping {
    /// `None` once there are too many.
    kept: Option<Kept>,
    bytes: usize,
}

impl Keeping {
    pub(super) fn new() -> Self {
        Self { kept: Some(Kept::default()), bytes: 0 }
    }

    pub(super) fn add(&mut self, entry: Entry) {
        let Some(Kept(entries)) = &mut self.kept else { return };
        let known = match entry.kind {
            Kind::Regular { size: 1.., .. } => Known::File(entry.path),
            _ => Known::Whole(entry),
        };
        let (path, weight) = match &known {
            Known::Whole(entry) => (&entry.path, entry.weight()),
            Known::File(path) => (path, size_of::<Known>() + path.as_bytes().len()),
        };
        self.bytes += weight;
        // All directories above a file are open at a time.
        let is_deep = path.components().nth(OPEN_LEVELS).is_some();
        entries.push(known);
        if is_deep || self.bytes > MOST_BYTES {
            self.kept = None;
        }
    }

    /// All entries, if they are not too many.
    pub(super) fn finish(self) -> Option<Arc<Kept>> {
        self.kept.map(Arc::new)
    }
}

/// A walk over what was kept.
pub(super) struct KeptWalk {
    kept: Arc<Kept>,
    next: usize,
    /// From the root to the directory of the last file.
    open: Vec<Arc<Handle>>,
    failed: bool,
}

impl KeptWalk {
    pub(super) fn new(root: Handle, kept: &Arc<Kept>) -> Self {
        Self { kept: Arc::clone(kept), next: 0, open: vec![Arc::new(root)], failed: false }
    }

    /// The directory at a path.
    fn directory(&mut self, path: &[u8]) -> Result<Arc<Handle>, DirectoryError> {
        loop {
            // The root is never left: every path lies in it.
            let last = &self.open[self.open.len() - 1];
            let known = last.path.as_bytes();
            let rest = match path.strip_prefix(known) {
                Some([]) => return Ok(Arc::clone(last)),
                Some(rest) if known.is_empty() => rest,
                Some([b'/', rest @ ..]) => rest,
                _ => {
                    self.open.pop();
                    continue;
                }
            };
            let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let name = &rest[..end];
            let opened = last.directory(name, &Arc::new(last.path.join(name)))?;
            self.open.push(Arc::new(opened));
        }
    }
}

impl Batches for KeptWalk {
    fn next_batch(&mut self) -> Option<Batch> {
        let mut batch = Batch { order: self.next as u64, work: Vec::new(), error: None };
        let (mut directories, mut current) = (0, None);
        let kept = Arc::clone(&self.kept);
        while !self.failed
            && let Some(known) = kept.0.get(self.next)
            && batch.work.len() < BATCH_ENTRIES
            && directories < BATCH_DIRECTORIES
        {
            let work = match known {
                Known::Whole(entry) => Work::Entry(entry.clone()),
                Known::File(path) => {
                    let parent = path.split_last().map_or(&b""[..], |(parent, _)| parent);
                    match self.directory(parent) {
                        Ok(directory) => {
                            let before = current.replace(Arc::as_ptr(&directory));
                            directories += usize::from(before != current);
                            let (path, kind) = (path.clone(), FileType::RegularFile);
                            Work::Other { directory, path, kind }
                        }
                        Err(error) => {
                            self.failed = true;
                            batch.error = Some(error.into());
                            break;
                        }
                    }
                }
            };
            batch.work.push(work);
            self.next += 1;
        }
        (!batch.work.is_empty() || batch.error.is_some()).then_some(batch)
    }
}

//! What a scan saw, for the pass behind it: an entry without data is not looked up again, and no
//! directory is listed again.
//!
//! Only so much is kept as takes little memory. Of a larger tree nothing is, and it is walked again.

use super::DirectoryError;
use super::batch::{Batch, Batches, Course, Work};
use super::handle::Handle;
use super::walk::OPEN_LEVELS;
use crate::{Entry, EntryPath, Kind, SourceError};
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

/// Entries in a part of the list: it grows without a copy of what is there.
const PART: usize = 1024;

/// The entries of a tree, in their order: in parts that are full, but for the last.
#[derive(Default)]
pub(super) struct Kept(Vec<Vec<Known>>);

impl Kept {
    fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * PART + last.len())
    }

    fn push(&mut self, known: Known) {
        match self.0.last_mut() {
            Some(last) if last.len() < PART => last.push(known),
            _ => {
                let mut part = Vec::with_capacity(PART);
                part.push(known);
                self.0.push(part);
            }
        }
    }

    fn get(&self, index: usize) -> &Known {
        &self.0[index / PART][index % PART]
    }
}

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
        let Some(kept) = &mut self.kept else { return };
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
        kept.push(known);
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
    open: OpenPath,
    course: Course,
}

impl KeptWalk {
    pub(super) fn new(root: Handle, kept: &Arc<Kept>) -> Self {
        let open = OpenPath(vec![Arc::new(root)]);
        Self { kept: Arc::clone(kept), open, course: Course::default() }
    }
}

impl Batches for KeptWalk {
    fn next_batch(&mut self) -> Option<Batch> {
        let Self { kept, open, course } = self;
        course.next_batch(kept.len(), |index| open.work(kept.get(index)))
    }
}

/// The open directories from the root to that of the last file.
struct OpenPath(Vec<Arc<Handle>>);

impl OpenPath {
    /// The work for one entry.
    fn work(&mut self, known: &Known) -> Result<Work, SourceError> {
        Ok(match known {
            Known::Whole(entry) => Work::Entry(entry.clone()),
            Known::File(path) => {
                let parent = path.split_last().map_or(&b""[..], |(parent, _)| parent);
                let directory = self.directory(parent)?;
                Work::Other { directory, path: path.clone(), kind: FileType::RegularFile }
            }
        })
    }

    /// The directory at a path.
    fn directory(&mut self, path: &[u8]) -> Result<Arc<Handle>, DirectoryError> {
        loop {
            // The root is never left: every path lies in it.
            let last = &self.0[self.0.len() - 1];
            let known = last.path.as_bytes();
            let rest = match path.strip_prefix(known) {
                Some([]) => return Ok(Arc::clone(last)),
                Some(rest) if known.is_empty() => rest,
                Some([b'/', rest @ ..]) => rest,
                _ => {
                    self.0.pop();
                    continue;
                }
            };
            let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            let name = &rest[..end];
            let opened = last.directory(name, &Arc::new(last.path.join(name)))?;
            self.0.push(Arc::new(opened));
        }
    }
}

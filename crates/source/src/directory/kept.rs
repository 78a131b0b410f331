//! What a scan saw, for the pass behind it: an entry without data is not looked up again, and no
//! directory is listed again. Threads read files alone; everything else is delivered from here.
//!
//! Only so much is kept as takes little memory. Of a larger tree nothing is, and it is walked again.

use super::walk::OPEN_LEVELS;
use crate::FileError;
use crate::entry::KEPT_BYTES;
use crate::files::batch::{Batch, Batches, Course, Work};
use crate::files::handle::Handle;
use crate::{Entry, EntryPath, Kind, SourceError};
use rustix::fs::FileType;
use std::sync::Arc;

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
pub(super) struct Kept {
    parts: Vec<Vec<Known>>,
    /// How many are files to be read.
    files: usize,
}

impl Kept {
    fn push(&mut self, known: Known) {
        self.files += usize::from(matches!(known, Known::File(_)));
        match self.parts.last_mut() {
            Some(last) if last.len() < PART => last.push(known),
            _ => {
                let mut part = Vec::with_capacity(PART);
                part.push(known);
                self.parts.push(part);
            }
        }
    }

    fn get(&self, index: usize) -> Option<&Known> {
        self.parts.get(index / PART)?.get(index % PART)
    }
}

/// What comes next in a pass over what was kept.
pub(super) enum Next {
    /// This entry.
    Whole(Entry),
    /// A file that is read.
    File,
    End,
}

/// A pass over what was kept.
pub(super) struct KeptPass {
    pub(super) kept: Arc<Kept>,
    next: usize,
    in_file: bool,
}

impl KeptPass {
    pub(super) fn new(kept: Kept) -> Self {
        Self { kept: Arc::new(kept), next: 0, in_file: false }
    }

    pub(super) fn next(&mut self) -> Next {
        let known = self.kept.get(self.next);
        self.next += usize::from(known.is_some());
        self.in_file = matches!(known, Some(Known::File(_)));
        match known {
            Some(Known::Whole(entry)) => Next::Whole(entry.clone()),
            Some(Known::File(_)) => Next::File,
            None => Next::End,
        }
    }

    /// Whether the entry that came last is a file that is read.
    pub(super) fn in_file(&self) -> bool {
        self.in_file
    }

    /// Ends the pass.
    pub(super) fn end(&mut self) {
        (self.next, self.in_file) = (usize::MAX, false);
    }

    pub(super) fn restart(&mut self) {
        (self.next, self.in_file) = (0, false);
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
        if is_deep || self.bytes > KEPT_BYTES {
            self.kept = None;
        }
    }

    /// All entries, if they are not too many.
    pub(super) fn finish(self) -> Option<Kept> {
        self.kept
    }
}

/// A walk over the files that were kept.
pub(super) struct KeptFiles {
    kept: Arc<Kept>,
    /// Where the next file is looked for.
    place: usize,
    open: OpenPath,
    course: Course,
}

impl KeptFiles {
    pub(super) fn new(root: Handle, kept: &Arc<Kept>) -> Self {
        let open = OpenPath(vec![Arc::new(root)]);
        Self { kept: Arc::clone(kept), place: 0, open, course: Course::default() }
    }
}

impl Batches for KeptFiles {
    fn next_batch(&mut self, with_data: bool) -> Option<Batch> {
        let Self { kept, place, open, course } = self;
        course.next_batch(kept.files, with_data, |_| {
            loop {
                let known = kept.get(*place).expect("there are as many files as were counted");
                *place += 1;
                if let Known::File(path) = known {
                    return open.work(path);
                }
            }
        })
    }
}

/// The open directories from the root to that of the last file.
struct OpenPath(Vec<Arc<Handle>>);

impl OpenPath {
    /// The work for one file.
    fn work(&mut self, path: &EntryPath) -> Result<Work, SourceError> {
        let parent = path.split_last().map_or(&b""[..], |(parent, _)| parent);
        let directory = self.directory(parent)?;
        Ok(Work::Other { directory, path: path.clone(), kind: FileType::RegularFile })
    }

    /// The directory at a path.
    fn directory(&mut self, path: &[u8]) -> Result<Arc<Handle>, FileError> {
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

//! The entries of a described tree, with the files that have their contents.

use super::contents::{Contents, HostFiles};
use super::described::{ContentsFile, Described, Place, contents_problem};
use super::tree::{File, Name, Tree, Whence};
use crate::directory::{BATCH_ENTRIES, Batch, Batches, Work};
use crate::entry::{Entry, Kind, Links};
use crate::{Metadata, SourceError, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;

/// Most directories in a batch; each keeps a file descriptor open.
const BATCH_DIRECTORIES: usize = 16;

/// A walk over a tree.
pub(super) struct Walk {
    description: Arc<str>,
    tree: Arc<Tree>,
    contents: Option<Contents>,
    host: HostFiles,
    next: usize,
    failed: bool,
}

impl Walk {
    pub(super) fn new(description: Arc<str>, tree: Arc<Tree>, contents: Option<Contents>) -> Self {
        Self { description, tree, contents, host: HostFiles::default(), next: 0, failed: false }
    }

    /// The work for one name.
    fn work(&mut self, index: usize) -> Result<Work, SourceError> {
        let tree = Arc::clone(&self.tree);
        let name = &tree.names[index];
        let file = tree.file(name.file);
        let (first, names) = tree.uses(name.file);
        let mut entry = Entry {
            path: name.path.clone(),
            kind: Kind::HardLink(tree.names[first].path.clone()),
            metadata: file.told.over(Some(&NOTHING)).unwrap_or(NOTHING),
            xattrs: Vec::new(),
            links: if names > 1 { Links::Several } else { Links::Single },
            replaces: false,
        };
        if first == index {
            entry.kind = file.kind.clone();
            entry.xattrs = file.xattrs.to_vec();
        }
        if file.told.is_complete() && !matches!(entry.kind, Kind::Regular { .. }) {
            return Ok(Work::Entry(entry));
        }
        Ok(Work::Described(Box::new(Described {
            entry,
            place: self.place(&tree.names[first], file)?,
            told: file.told,
            expected: file.expected.clone(),
            description: Arc::clone(&self.description),
            line: name.line,
        })))
    }

    fn place(&mut self, name: &Name, file: &File) -> Result<Place, SourceError> {
        let path = match &file.whence {
            Whence::Nowhere => return Ok(Place::Nowhere),
            Whence::Inline(bytes) => return Ok(Place::Inline(Arc::clone(bytes))),
            Whence::AtPath => &name.path,
            Whence::Below(path) => path,
            Whence::Host(path) => {
                let found = self.host.file(path);
                return self.placed(name, found, || path.clone());
            }
        };
        let Some(contents) = &mut self.contents else { return Ok(Place::Nowhere) };
        let found = contents.file(path);
        let shown = contents.shown(path.as_bytes());
        // Attributes alone may come from elsewhere.
        if found.is_err() && !matches!(file.kind, Kind::Regular { .. }) {
            return Ok(Place::Nowhere);
        }
        self.placed(name, found, || shown)
    }

    fn placed(
        &self,
        name: &Name,
        found: Result<ContentsFile, rustix::io::Errno>,
        shown: impl FnOnce() -> PathBuf,
    ) -> Result<Place, SourceError> {
        found.map(Place::File).map_err(|error| {
            let problem = contents_problem(name.path.as_bytes().to_vec(), shown(), error);
            problem.at(&self.description, name.line).into()
        })
    }
}

/// What an entry has before its file is known.
const NOTHING: Metadata =
    Metadata { mode: 0, uid: 0, gid: 0, mtime: Timestamp { seconds: 0, nanoseconds: 0 } };

impl Batches for Walk {
    fn next_batch(&mut self) -> Option<Batch> {
        let mut batch = Batch { order: self.next as u64, work: Vec::new(), error: None };
        let (mut directories, mut last) = (0, None);
        while !self.failed
            && self.next < self.tree.names.len()
            && batch.work.len() < BATCH_ENTRIES
            && directories < BATCH_DIRECTORIES
        {
            match self.work(self.next) {
                Ok(work) => {
                    if let Work::Described(described) = &work
                        && let Place::File(file) = &described.place
                        && last.replace(Arc::as_ptr(&file.directory))
                            != Some(Arc::as_ptr(&file.directory))
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

//! The entries of a described tree, with the files that have their contents.

use super::contents::{Contents, HostFiles};
use super::error::DescriptionProblem;
use super::file::{File, Origin};
use super::spec::DescriptionFormat;
use super::tree::Tree;
use crate::entry::{Entry, Kind, Links};
use crate::files::{
    Batch, Batches, Blame, ContentsFile, ContentsProblem, Course, PartialEntry, Place, Work,
};
use crate::{EntryPath, Metadata, SourceError, Timestamp};
use std::path::PathBuf;
use std::sync::Arc;

/// A walk over a tree.
pub(super) struct Walk {
    finder: Finder,
    course: Course,
}

impl Walk {
    pub(super) fn new(
        description: Arc<str>,
        format: DescriptionFormat,
        tree: Arc<Tree>,
        contents: Option<Contents>,
    ) -> Self {
        let takes_xattrs = format == DescriptionFormat::Prototype;
        let host = HostFiles::default();
        let blame = move |line, problem: ContentsProblem| {
            DescriptionProblem::from(problem).at(&description, line).into()
        };
        let finder = Finder { blame: Arc::new(blame), takes_xattrs, tree, contents, host };
        Self { finder, course: Course::default() }
    }
}

impl Batches for Walk {
    fn next_batch(&mut self, with_data: bool) -> Option<Batch> {
        let Self { finder, course } = self;
        course.next_batch(finder.tree.len(), with_data, |index| finder.work(index))
    }
}

/// Finds the files that names of the tree have their contents in.
struct Finder {
    blame: Arc<Blame>,
    /// Files have the attributes of their contents, as `mkfs.xfs -p` takes them.
    takes_xattrs: bool,
    tree: Arc<Tree>,
    contents: Option<Contents>,
    host: HostFiles,
}

impl Finder {
    /// The work for one name.
    fn work(&mut self, index: usize) -> Result<Work, SourceError> {
        let tree = Arc::clone(&self.tree);
        let name = tree.name(index);
        let file = tree.file(name.file);
        let (first, names) = tree.uses(index);
        let first_name = tree.name(first);
        let is_first = first == index;
        let is_regular = matches!(file.kind, Kind::Regular { .. });
        let is_complete = file.metadata.is_complete() && !(is_regular && is_first);
        let place = match is_complete {
            true => Place::Nowhere,
            false => self.place(&tree.path(first_name), first_name.line, &file)?,
        };
        let (kind, xattrs) = match is_first {
            true => (file.kind, file.xattrs.into_vec()),
            false => (Kind::HardLink(tree.path(first_name)), Vec::new()),
        };
        let entry = Entry {
            path: tree.path(name),
            kind,
            metadata: file.metadata.over(Some(&NOTHING)).unwrap_or(NOTHING),
            xattrs,
            links: if names > 1 { Links::Several } else { Links::Single },
            replaces: false,
        };
        if is_complete {
            return Ok(Work::Entry(entry));
        }
        Ok(Work::Partial(Box::new(PartialEntry {
            entry,
            place,
            metadata: file.metadata,
            expected: file.expected,
            takes_xattrs: self.takes_xattrs,
            line: name.line,
            blame: Arc::clone(&self.blame),
        })))
    }

    /// Where the file at `own`, of which `line` tells, has its contents.
    fn place(&mut self, own: &EntryPath, line: u64, file: &File) -> Result<Place, SourceError> {
        let path = match &file.origin {
            Origin::Nowhere => return Ok(Place::Nowhere),
            Origin::Inline(bytes) => return Ok(Place::Inline(Arc::clone(bytes))),
            Origin::AtPath => own,
            Origin::Below(path) => path,
            Origin::Host(path) => {
                let found = self.host.file(path);
                return self.placed(own, line, found, || path.clone());
            }
        };
        let Some(contents) = &mut self.contents else { return Ok(Place::Nowhere) };
        let found = contents.file(path);
        let shown = contents.shown(path.as_bytes());
        // Attributes alone may come from elsewhere.
        if found.is_err() && !matches!(file.kind, Kind::Regular { .. }) {
            return Ok(Place::Nowhere);
        }
        self.placed(own, line, found, || shown)
    }

    fn placed(
        &self,
        own: &EntryPath,
        line: u64,
        found: Result<ContentsFile, rustix::io::Errno>,
        shown: impl FnOnce() -> PathBuf,
    ) -> Result<Place, SourceError> {
        found.map(Place::File).map_err(|error| {
            let problem = ContentsProblem::of(own.as_bytes().to_vec(), shown(), error);
            (self.blame)(line, problem)
        })
    }
}

/// What an entry has before its file is known.
const NOTHING: Metadata =
    Metadata { mode: 0, uid: 0, gid: 0, mtime: Timestamp { seconds: 0, nanoseconds: 0 } };

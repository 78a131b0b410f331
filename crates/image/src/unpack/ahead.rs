//! The steps of a walk some way ahead of their use, with the data of the files on its way.

use super::walk::{Step, Walk};
use super::{Subtree, UnpackError};
use std::collections::VecDeque;
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::{OpenFile, Volume};

/// Most steps ahead.
const STEPS_MAX: usize = 1024;

/// Bytes of data ahead; the last file may pass it.
const BYTES_MAX: u64 = 24 << 20;

/// Most bytes of one file that are read ahead of the file's turn; the file's own reader goes on
/// from there.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A step, with what is known of it.
pub(super) struct Upcoming {
    /// Path from the directory on top, without slashes at its ends; empty for that itself.
    pub(super) path: Vec<u8>,
    pub(super) inode: Arc<Inode>,
    /// Whether it is a name; else it is the end of a directory.
    pub(super) entering: bool,
    /// The file, if it is a regular one and can be opened.
    pub(super) file: Option<OpenFile>,
    /// Bytes that were asked for.
    bytes: u64,
}

/// A walk that is ahead of its reader.
pub(super) struct Ahead<'v> {
    volume: &'v Arc<Volume>,
    walk: Walk<'v>,
    steps: VecDeque<Upcoming>,
    bytes: u64,
    /// How the walk ended: it did not yet, it is at the end, or it met an error.
    end: Option<Result<(), UnpackError>>,
}

impl<'v> Ahead<'v> {
    pub(super) fn new(subtree: Subtree<'v>) -> Self {
        let (volume, walk) = (subtree.volume, Walk::new(subtree));
        Self { volume, walk, steps: VecDeque::new(), bytes: 0, end: None }
    }

    /// The next step; `None` at the end. An error comes when all before it was handed out.
    pub(super) fn next(&mut self) -> Result<Option<Upcoming>, UnpackError> {
        if self.steps.len() <= STEPS_MAX / 2 && self.bytes <= BYTES_MAX / 2 {
            self.walk_on();
        }
        if let Some(step) = self.steps.pop_front() {
            self.bytes -= step.bytes;
            return Ok(Some(step));
        }
        self.end.replace(Ok(())).unwrap_or(Ok(())).map(|()| None)
    }

    /// Walks as far as it may be ahead, and begins to read the files on the way.
    fn walk_on(&mut self) {
        let first = self.steps.len();
        while self.end.is_none() && self.steps.len() < STEPS_MAX && self.bytes < BYTES_MAX {
            match self.walk.step() {
                Ok(Some(step)) => self.add(step),
                Ok(None) => self.end = Some(Ok(())),
                Err(error) => self.end = Some(Err(error)),
            }
        }
        let files = self.steps.range(first..);
        let reads = files.filter_map(|step| Some((step.file.as_ref()?, 0..step.bytes)));
        OpenFile::will_need_all(reads);
    }

    fn add(&mut self, step: Step) {
        let (inode, entering) = match step {
            Step::Enter(inode) => (inode, true),
            Step::Leave(inode) => (inode, false),
        };
        let (is_file, size) = {
            let state = inode.read();
            // Of a file with several names most need no data.
            let is_file = state.file_type() == FileType::Regular && state.core.nlink == 1;
            (is_file, state.core.size)
        };
        // An error comes again when the file has its turn.
        let file = is_file.then(|| OpenFile::open_inode(self.volume, &inode).ok()).flatten();
        let bytes = if file.is_some() { size.min(FILE_BYTES_MAX) } else { 0 };
        self.bytes += bytes;
        let path = self.walk.path().to_vec();
        self.steps.push_back(Upcoming { path, inode, entering, file, bytes });
    }
}

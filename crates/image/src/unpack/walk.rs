//! Every name of a tree, once, in the order of its directories.

use super::links::InodeSet;
use super::names::{NameHasher, Names};
use super::{Subtree, UnpackError};
use std::collections::VecDeque;
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::ops::{self, Position, path_text};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{TreeAhead, WalkOrder};

/// Entries read from a directory at a time, unless they are sorted.
const BATCH: usize = 128;

/// How a tree is walked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// The names of a directory that are sorted are all in memory.
    pub(super) order: WalkOrder,
    /// Files are opened and read ahead.
    pub(super) data: bool,
}

impl Course {
    /// To take everything out, in the order in which it is found.
    pub(super) const STORED: Self = Self { order: WalkOrder::Stored, data: true };
}

/// The item that the walk reached.
pub(super) enum Step {
    /// A name; its path is [`Walk::path`]. The directory on top comes first, with the empty path.
    Enter(Arc<Inode>),
    /// The end of a directory, whose path is [`Walk::path`].
    Leave(Arc<Inode>),
}

/// A directory on the way.
struct Level {
    inode: Arc<Inode>,
    number: InodeNumber,
    /// Length of its path.
    path_len: usize,
    entries: VecDeque<(Vec<u8>, InodeNumber)>,
    /// Of those, entries whose inodes are on their way.
    begun: usize,
    /// Where to go on when those are done.
    next: Position,
    /// Names that were met.
    names: Names,
}

/// A walk through all directories, depth first.
pub(super) struct Walk<'v> {
    subtree: Subtree<'v>,
    order: WalkOrder,
    ahead: TreeAhead,
    levels: Vec<Level>,
    directories: InodeSet,
    hasher: NameHasher,
    path: Vec<u8>,
    started: bool,
}

impl<'v> Walk<'v> {
    pub(super) fn new(subtree: Subtree<'v>, order: WalkOrder) -> Self {
        Self {
            subtree,
            order,
            ahead: TreeAhead::new(subtree.volume, subtree.directory, order),
            levels: Vec::new(),
            directories: InodeSet::default(),
            hasher: NameHasher::default(),
            path: Vec::new(),
            started: false,
        }
    }

    /// Path of the last step from the directory on top, without slashes at its ends.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// An error of the volume at the present path.
    pub(super) fn damaged(&self, source: undercroft_xfs::Error) -> UnpackError {
        self.subtree.damaged(&self.path, source)
    }

    /// The next step; `None` at the end.
    pub(super) fn step(&mut self) -> Result<Option<Step>, UnpackError> {
        if !self.started {
            self.started = true;
            return self.enter(self.subtree.directory).map(Some);
        }
        loop {
            let Some(level) = self.levels.last_mut() else {
                return Ok(None);
            };
            self.path.truncate(level.path_len);
            if level.begun == 0 {
                level.begun = level.entries.len().min(BATCH);
                let next = level.entries.iter().take(level.begun).map(|(_, number)| *number);
                self.subtree.volume.prefetch_inodes(next);
            }
            level.begun = level.begun.saturating_sub(1);
            match level.entries.pop_front() {
                Some((name, number)) => {
                    if self.admit(&name, number)? {
                        if !self.path.is_empty() {
                            self.path.push(b'/');
                        }
                        self.path.extend(name);
                        return self.enter(number).map(Some);
                    }
                }
                None if level.next == Position::END => {
                    return Ok(self.levels.pop().map(|level| Step::Leave(level.inode)));
                }
                None => self.read()?,
            }
        }
    }

    /// Reads on in the present directory.
    fn read(&mut self) -> Result<(), UnpackError> {
        let Some(Level { inode, entries, next, .. }) = self.levels.last_mut() else {
            return Ok(());
        };
        let sorted = self.order == WalkOrder::Names;
        let read = ops::all_entries(self.subtree.volume, &inode.read(), *next, |entry| {
            entries.push_back((entry.name.to_vec(), entry.inode));
            sorted || entries.len() < BATCH
        });
        *next = read.map_err(|error| self.subtree.damaged(&self.path, error))?;
        if sorted {
            entries.make_contiguous().sort_unstable();
        }
        Ok(())
    }

    /// Whether a name of the present directory is to be unpacked, which the directory's own `.` and
    /// `..` are not. A name that leads elsewhere, or that came before, is an error: unpacking it
    /// would write behind a symbolic link, or over another file.
    fn admit(&mut self, name: &[u8], number: InodeNumber) -> Result<bool, UnpackError> {
        let parent = self.levels.iter().rev().nth(1).map(|level| level.number);
        let Some(level) = self.levels.last_mut() else { return Ok(false) };
        let own = match name {
            b"." => Some(level.number),
            b".." => Some(parent.or(self.subtree.parent()).unwrap_or(number)),
            _ => None,
        };
        let wrong = name.is_empty() || name.contains(&b'/') || name.contains(&0);
        let directory = || self.subtree.path_text(&self.path);
        if wrong || own.is_some_and(|own| own != number) {
            return Err(UnpackError::Name { directory: directory(), name: path_text(name) });
        }
        if !level.names.insert(&self.hasher, name) {
            return Err(UnpackError::Duplicate { directory: directory(), name: path_text(name) });
        }
        Ok(own.is_none())
    }

    /// Comes to an inode by the present path.
    fn enter(&mut self, number: InodeNumber) -> Result<Step, UnpackError> {
        let inode = self.subtree.volume.inode(number);
        let inode = inode.map_err(|error| self.damaged(error.into_damage()))?;
        if inode.read().file_type() == FileType::Directory {
            if !self.directories.insert(number) {
                let path = self.subtree.path_text(&self.path);
                return Err(UnpackError::Repeated { path, inode: number });
            }
            self.ahead.reach(number);
            self.levels.push(Level {
                inode: Arc::clone(&inode),
                number,
                path_len: self.path.len(),
                entries: VecDeque::new(),
                begun: 0,
                next: Position::START,
                names: Names::default(),
            });
        }
        Ok(Step::Enter(inode))
    }
}

//! Every name of a volume, once, in the order of its directories.

use super::UnpackError;
use super::links::InodeSet;
use std::collections::VecDeque;
use std::sync::Arc;
use undercroft_xfs::Volume;
use undercroft_xfs::dir::Position;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::ops::{self, path_text};
use undercroft_xfs::units::InodeNumber;

/// Entries read from a directory at a time.
const BATCH: usize = 128;

/// What the walk came to.
pub(super) enum Step {
    /// A name; its path is [`Walk::path`]. The root directory comes first, with the empty path.
    Enter(Arc<Inode>),
    /// The end of a directory, whose path is [`Walk::path`].
    Leave(Arc<Inode>),
}

/// A directory on the way.
struct Level {
    inode: Arc<Inode>,
    /// Length of its path.
    path_len: usize,
    entries: VecDeque<(Vec<u8>, InodeNumber)>,
    /// Where to go on when those are done.
    next: Position,
}

/// A walk through all directories, depth first.
pub(super) struct Walk<'v> {
    volume: &'v Volume,
    levels: Vec<Level>,
    directories: InodeSet,
    path: Vec<u8>,
    started: bool,
}

impl<'v> Walk<'v> {
    pub(super) fn new(volume: &'v Volume) -> Self {
        let (levels, path) = (Vec::new(), Vec::new());
        Self { volume, levels, directories: InodeSet::default(), path, started: false }
    }

    /// Path of the last step from the root, without slashes at its ends.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// An error of the volume at the present path.
    pub(super) fn damaged(&self, source: undercroft_xfs::Error) -> UnpackError {
        UnpackError::Volume { path: format!("/{}", path_text(&self.path)), source }
    }

    /// The next step; `None` at the end.
    pub(super) fn step(&mut self) -> Result<Option<Step>, UnpackError> {
        if !self.started {
            self.started = true;
            return self.enter(self.volume.geometry().root_inode).map(Some);
        }
        let Some(level) = self.levels.last_mut() else {
            return Ok(None);
        };
        self.path.truncate(level.path_len);
        if level.entries.is_empty() && level.next != Position::END {
            let (inode, from, entries) = (level.inode.read(), level.next, &mut level.entries);
            let read = ops::entries(self.volume, &inode, from, |entry| {
                entries.push_back((entry.name.to_vec(), entry.inode));
                entries.len() < BATCH
            });
            drop(inode);
            level.next = match read {
                Ok(next) => next,
                Err(error) => return Err(self.damaged(error)),
            };
            return self.step();
        }
        let Some((name, number)) = level.entries.pop_front() else {
            let step = self.levels.pop().map(|level| Step::Leave(level.inode));
            return Ok(step);
        };
        if name.is_empty()
            || name == b"."
            || name == b".."
            || name.contains(&b'/')
            || name.contains(&0)
        {
            let directory = format!("/{}", path_text(&self.path));
            return Err(UnpackError::Name { directory, name: path_text(&name) });
        }
        if !self.path.is_empty() {
            self.path.push(b'/');
        }
        self.path.extend(name);
        self.enter(number).map(Some)
    }

    /// Comes to an inode by the present path.
    fn enter(&mut self, number: InodeNumber) -> Result<Step, UnpackError> {
        let inode = self.volume.inode(number);
        let inode = inode.map_err(|error| self.damaged(error.into_damage()))?;
        if inode.read().file_type() == FileType::Directory {
            if !self.directories.insert(number) {
                let path = format!("/{}", path_text(&self.path));
                return Err(UnpackError::Repeated { path, inode: number });
            }
            self.levels.push(Level {
                inode: Arc::clone(&inode),
                path_len: self.path.len(),
                entries: VecDeque::new(),
                next: Position::START,
            });
        }
        Ok(Step::Enter(inode))
    }
}

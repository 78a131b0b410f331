//! Whole trees, depth first.

use super::bytes;
use super::read_dir::{Child, Listing};
use super::resolve::Follow;
use crate::{FileSystem, Metadata, PathError};
use rustc_hash::FxHashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, TreeAhead, WalkOrder, ops};

/// A file that a walk has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkEntry {
    path: PathBuf,
    depth: usize,
    metadata: Metadata,
}

impl WalkEntry {
    /// The path of the walk, and the names from there.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names from the start of the walk, which itself has the depth 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The metadata of the file, of a symbolic link itself.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// A walk over a tree: each directory, then its contents. Symbolic links are not followed.
///
/// Memory grows with the depth of the tree alone. Damage is an error, and the walk goes on beside
/// it; a directory that a damaged volume has in two places, or inside itself, is one error that
/// names both.
#[derive(Debug)]
pub struct Walk {
    fs: FileSystem,
    start: Option<Arc<Inode>>,
    /// Where the walk is.
    path: Vec<u8>,
    /// The directories on the way there, each with the length of its path.
    way: Vec<(Listing, usize)>,
    /// Their numbers, and the length of their paths.
    numbers: FxHashMap<InodeNumber, usize>,
    /// Directories read ahead, on a volume that does not change.
    ahead: Option<TreeAhead>,
}

impl FileSystem {
    /// A walk over the files at and below a path.
    ///
    /// # Errors
    /// As [`FileSystem::open_file`].
    pub fn walk(&self, path: impl AsRef<Path>) -> Result<Walk, PathError> {
        let path = bytes(&path);
        let start = Some(self.find(path, Follow::ALL)?);
        let (fs, path) = (self.clone(), path.to_vec());
        let ahead = start.as_ref().filter(|_| !self.is_writable()).map(|start| {
            let start = start.read().number;
            TreeAhead::new(self.volume(), start, WalkOrder::Stored)
        });
        Ok(Walk { fs, start, path, way: Vec::new(), numbers: FxHashMap::default(), ahead })
    }
}

impl Iterator for Walk {
    type Item = Result<WalkEntry, PathError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(start) = self.start.take() {
            return Some(Ok(self.visit(&start)));
        }
        loop {
            let (listing, len) = self.way.last_mut()?;
            self.path.truncate(*len);
            match listing.next(&self.fs) {
                Ok(Some(Child { name, inode })) => {
                    if self.path.last() != Some(&b'/') {
                        self.path.push(b'/');
                    }
                    self.path.extend_from_slice(&name);
                    match self.check(&inode, &name) {
                        Ok(true) => return Some(Ok(self.visit(&inode))),
                        // Moved away.
                        Ok(false) => {}
                        Err(error) => return Some(Err(PathError::of(&self.path, error))),
                    }
                }
                Ok(None) => self.leave_directory(),
                Err(error) => return Some(Err(PathError::of(&self.path, error))),
            }
        }
    }
}

impl Walk {
    /// Leaves out the rest of the directory that the walk is in: right after a directory was
    /// visited, all its contents.
    pub fn skip_directory(&mut self) {
        self.leave_directory();
    }

    fn leave_directory(&mut self) {
        if let Some((listing, _)) = self.way.pop() {
            self.numbers.remove(&listing.directory.read().number);
        }
    }

    /// Comes to an inode; the next step is into it if it is a directory.
    fn visit(&mut self, inode: &Arc<Inode>) -> WalkEntry {
        let metadata = self.fs.metadata_of(inode);
        let depth = self.way.len();
        if metadata.is_dir() {
            self.fs.note_read(inode);
            if let Some(ahead) = &mut self.ahead {
                ahead.reach(metadata.number);
            }
            self.numbers.insert(metadata.number, self.path.len());
            self.way.push((Listing::new(Arc::clone(inode)), self.path.len()));
        }
        WalkEntry { path: OsStr::from_bytes(&self.path).into(), depth, metadata }
    }

    /// Whether a directory is where it says it is; `false` if it was moved meanwhile.
    fn check(&self, inode: &Arc<Inode>, name: &[u8]) -> Result<bool, Error> {
        let known = self.fs.metadata_of(inode);
        if !known.is_dir() {
            return Ok(true);
        }
        if let Some(len) = self.numbers.get(&known.number) {
            let above = ops::path_text(&self.path[..*len]);
            let what = format!("the directory is inside itself: it is {above}, too");
            return Err(Error::Inode { inode: known.number, what });
        }
        let Some((listing, _)) = self.way.last() else { return Ok(true) };
        let here = listing.directory.read().number;
        let mut claimed = None;
        for _ in 0..2 {
            let parent = match self.fs.child(inode, b"..") {
                Ok(Some(parent)) => parent.read().number,
                Ok(None) => return Err(missing_parent(known.number)),
                Err(Error::Stale { .. }) => return Ok(false),
                Err(error) => return Err(error),
            };
            if parent == here {
                return Ok(true);
            }
            // Perhaps it was moved between the two looks.
            match self.fs.child(&listing.directory, name)? {
                Some(now) if Arc::ptr_eq(&now, inode) => claimed = Some(parent),
                _ => return Ok(false),
            }
        }
        let claimed = claimed.map_or(0, InodeNumber::get);
        let what = format!("the directory is in {here}, but says that it is in {claimed}");
        Err(Error::Inode { inode: known.number, what })
    }
}

fn missing_parent(inode: InodeNumber) -> Error {
    Error::Inode { inode, what: "the directory has no \"..\"".into() }
}

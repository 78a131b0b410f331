//! Whole trees that go.

use super::bytes;
use super::read_dir::{Child, Listing};
use super::resolve::Follow;
use crate::{File, FileSystem, PathError};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use undercroft_xfs::format::FileType;
use undercroft_xfs::inode::Inode;
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, ErrorKind};

/// Directories of the way down that are held; those above are found again by the way back, `..`.
const HELD: usize = 128;

/// A directory that is being emptied.
struct Frame {
    /// Holds the number.
    directory: File,
    listing: Listing,
    /// Its name in the directory above, unless it was found by the way back.
    name: Option<Vec<u8>>,
}

impl FileSystem {
    /// Removes a directory with all that is in it, or a symbolic link, in memory that does not grow
    /// with the tree. What fails leaves the rest of the tree there.
    ///
    /// # Errors
    /// It does not exist, or is something else; others create files in it meanwhile; a damaged
    /// structure; the device failed; the volume is read-only. The path is that of the tree.
    pub fn remove_dir_all(&self, path: impl AsRef<Path>) -> Result<(), PathError> {
        let mut place = self.place_by(bytes(&path), Follow::NAME, ErrorKind::Invalid)?;
        let missing = || Error::NotFound(String::new());
        let inode = place.inode.take().ok_or_else(|| place.failed(missing()))?;
        let kind = inode.read().file_type();
        place.expect_kind(kind)?;
        let removed = match kind {
            FileType::Symlink => {
                self.nodes().unlink(place.directory().number(), place.name()).map(drop)
            }
            _ => self.remove_tree(inode, place.directory(), place.name()),
        };
        removed.map_err(|error| place.failed(error))
    }

    fn remove_tree(&self, inode: Arc<Inode>, above: &File, top_name: &[u8]) -> Result<(), Error> {
        // So no way leads back to it from below. An error for all else but directories.
        self.expect_below(&inode, above.number())?;
        let mut way = VecDeque::from([self.frame(inode, None)?]);
        let top = way[0].directory.number();
        while let Some(last) = way.back_mut() {
            if let Some(Child { name, inode }) = last.listing.next(self)? {
                if inode.read().file_type() == FileType::Directory {
                    self.expect_below(&inode, last.directory.number())?;
                    way.push_back(self.frame(inode, Some(name))?);
                    if way.len() > HELD {
                        way.pop_front();
                    }
                } else {
                    gone(self.nodes().unlink(last.directory.number(), &name))?;
                }
                continue;
            }
            let Some(Frame { directory, listing, name }) = way.pop_back() else { break };
            if directory.number() == top {
                // It is not open then, so it is freed at once.
                drop((directory, listing));
                return gone(self.nodes().rmdir(above.number(), top_name));
            }
            if way.is_empty() {
                way.push_back(self.frame_above(&listing)?);
            }
            let Some(parent) = way.back() else { break };
            let name = match name {
                Some(name) => Some(name),
                None => self.name_in(parent, directory.number())?,
            };
            drop((directory, listing));
            if let Some(name) = name {
                gone(self.nodes().rmdir(parent.directory.number(), &name))?;
            }
        }
        Ok(())
    }

    fn frame(&self, inode: Arc<Inode>, name: Option<Vec<u8>>) -> Result<Frame, Error> {
        Ok(Frame { directory: self.open_inode(&inode)?, listing: Listing::new(inode), name })
    }

    /// The directory that an empty one is in, to go on there.
    fn frame_above(&self, below: &Listing) -> Result<Frame, Error> {
        let parent = self.child(&below.directory, b"..")?;
        self.frame(parent.ok_or_else(|| Error::NotFound(String::new()))?, None)
    }

    /// The name of a directory in the one above; `None` if another thread moved it. The names
    /// before it are gone, so it is one of the first.
    fn name_in(&self, above: &Frame, number: InodeNumber) -> Result<Option<Vec<u8>>, Error> {
        let mut listing = Listing::new(Arc::clone(&above.listing.directory));
        while let Some(Child { name, inode }) = listing.next(self)? {
            if inode.read().number == number {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// Only directories that say themselves that they are there are emptied: of a damaged volume,
    /// nothing outside the tree.
    fn expect_below(&self, inode: &Inode, here: InodeNumber) -> Result<(), Error> {
        let parent = self.child(inode, b"..")?.map(|parent| parent.read().number);
        if parent == Some(here) {
            return Ok(());
        }
        let number = inode.read().number;
        let says = parent.map_or("nowhere".to_owned(), |parent| parent.to_string());
        let what = format!("the directory is in {here}, but says that it is in {says}");
        Err(Error::Inode { inode: number, what })
    }
}

/// A name that is gone already need not be removed.
fn gone<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Ok(_) | Err(Error::NotFound(_) | Error::Stale { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

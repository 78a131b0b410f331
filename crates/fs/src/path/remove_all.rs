//! Whole trees that go.

use super::AsPath;
use super::read_dir::{Child, Listing};
use super::resolve::Follow;
use crate::error::At;
use crate::{File, FileSystem, PathError};
use undercroft_xfs::Error;
use undercroft_xfs::format::FileType;

/// A directory that is being emptied.
struct Frame {
    /// Holds the number.
    directory: File,
    listing: Listing,
    /// Its name in the directory before.
    name: Vec<u8>,
}

impl FileSystem {
    /// Removes a directory with all that is in it, or a symbolic link. Memory grows with the depth
    /// of the tree alone. What fails leaves the rest of the tree there.
    ///
    /// # Errors
    /// It does not exist, or is something else; others create files in it meanwhile; a damaged
    /// structure; the device failed; the volume is read-only. The path is that of the tree.
    pub fn remove_dir_all(&self, path: impl AsPath) -> Result<(), PathError> {
        let path = path.path_bytes();
        self.remove_tree(path).at(path)
    }

    fn remove_tree(&self, path: &[u8]) -> Result<(), Error> {
        let located = self.locate(path, Follow::BUT_LAST)?;
        let inode = located.inode.clone();
        let (above, name) = self.place(located, path)?;
        let inode = inode.ok_or_else(|| Error::NotFound(String::new()))?;
        if inode.read().file_type() == FileType::Symlink {
            return self.unlink(above.number(), &name).map(drop);
        }
        // An error for all else but directories.
        self.child(&inode, b".")?;
        let frame = |inode, name| -> Result<Frame, Error> {
            let directory = self.open_inode(&inode)?;
            Ok(Frame { directory, listing: Listing::new(inode), name })
        };
        let mut way = vec![frame(inode, name)?];
        while let Some(last) = way.last_mut() {
            if let Some(Child { name, inode }) = last.listing.next(self)? {
                if inode.read().file_type() == FileType::Directory {
                    self.expect_below(&inode, last)?;
                    way.push(frame(inode, name)?);
                } else {
                    gone(self.unlink(last.directory.number(), &name))?;
                }
                continue;
            }
            let Some(Frame { directory, name, .. }) = way.pop() else { break };
            // Nobody has it open then, so it is freed at once.
            drop(directory);
            let above = way.last().map_or(&above, |frame| &frame.directory);
            gone(self.rmdir(above.number(), &name))?;
        }
        Ok(())
    }

    /// Only directories that say themselves that they are there are emptied: of a damaged volume,
    /// nothing outside the tree.
    fn expect_below(
        &self,
        inode: &undercroft_xfs::inode::Inode,
        above: &Frame,
    ) -> Result<(), Error> {
        let parent = self.child(inode, b"..")?.map(|parent| parent.read().number);
        let (here, number) = (above.directory.number(), inode.read().number);
        if parent == Some(here) {
            return Ok(());
        }
        let what = format!("the directory is in {here}, but does not say so");
        Err(Error::Inode { inode: number, what })
    }
}

/// What is gone already need not be removed.
fn gone<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Ok(_) | Err(Error::NotFound(_) | Error::Stale { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

//! The place of files that have no name left: `lost+found`, below the path of the last directory that is
//! known of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use undercroft_xfs::Volume;
use undercroft_xfs::format::FileType;
use undercroft_xfs::ops::{self, NewInode};
use undercroft_xfs::units::InodeNumber;

use crate::error::RepairError;

/// Its name in the root directory.
const NAME: &[u8] = b"lost+found";

/// Directories below each other at most: paths of damaged volumes may be of any length, or circles.
pub(super) const DEEPEST: usize = 64;

/// A directory that was made here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) generation: u32,
    pub(super) links: u32,
}

/// `lost+found`, made when it is needed.
#[derive(Debug, Default)]
pub(super) struct LostFound {
    top: Option<InodeNumber>,
    /// Directories that were made here, and their links.
    pub(super) made: BTreeMap<InodeNumber, Made>,
    /// Directories of which one was made in another: parents that are not new.
    pub(super) grown: Vec<InodeNumber>,
}

impl LostFound {
    /// The directory for what was in a directory of a path.
    pub(super) fn place(
        &mut self,
        volume: &Arc<Volume>,
        root: InodeNumber,
        path: &[Vec<u8>],
    ) -> Result<InodeNumber, RepairError> {
        let top = match self.top {
            Some(top) => top,
            None => self.open(volume, root)?,
        };
        self.top = Some(top);
        let mut at = top;
        for name in path.iter().take(DEEPEST) {
            match self.enter(volume, at, name)? {
                Some(below) => at = below,
                // Something else is there.
                None => return Ok(top),
            }
        }
        Ok(at)
    }

    fn open(
        &mut self,
        volume: &Arc<Volume>,
        root: InodeNumber,
    ) -> Result<InodeNumber, RepairError> {
        for suffix in 0_u32.. {
            let name = match suffix {
                0 => NAME.to_vec(),
                _ => format!("lost+found.{suffix}").into_bytes(),
            };
            if let Some(top) = self.enter(volume, root, &name)? {
                return Ok(top);
            }
        }
        Ok(root)
    }

    /// The directory of a name in another one, made if nothing is there; `None` if something else is.
    fn enter(
        &mut self,
        volume: &Arc<Volume>,
        directory: InodeNumber,
        name: &[u8],
    ) -> Result<Option<InodeNumber>, RepairError> {
        let inode = volume.inode(directory)?;
        let found = ops::lookup(volume, &inode.read(), name)?;
        if let Some(found) = found {
            let is_directory =
                volume.inode(found).is_ok_and(|it| it.read().file_type() == FileType::Directory);
            return Ok(Some(found).filter(|_| is_directory));
        }
        let new = NewInode::new(FileType::Directory, 0o700);
        let made = ops::make(volume, directory, name, &new)?;
        let inode = volume.inode(made)?;
        let core = &inode.read().core;
        self.made.insert(made, Made { generation: core.generation, links: core.nlink });
        match self.made.get_mut(&directory) {
            Some(above) => above.links += 1,
            None => self.grown.push(directory),
        }
        Ok(Some(made))
    }
}

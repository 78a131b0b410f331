//! The paths of an inode.

use super::Session;
use crate::text;
use anyhow::Result;
use std::os::unix::ffi::OsStrExt;
use undercroft_xfs::ops::{self, Parent};
use undercroft_xfs::units::InodeNumber;
use undercroft_xfs::{Error, Volume};

/// Directories above one another, at most: a longer way is one in a circle.
const DEEPEST: usize = 1 << 16;

impl Session<'_> {
    /// The paths of an inode, sorted: by its parent pointers, or by a walk through the whole tree where
    /// the volume has none. None for what has no name.
    pub(crate) fn paths_of(&self, number: InodeNumber) -> Result<Vec<Vec<u8>>> {
        if number == self.fs.root() {
            return Ok(vec![b"/".to_vec()]);
        }
        let mut paths = Vec::new();
        if self.volume.geometry().features.parent_pointers() {
            for parent in parents(self.volume, number)? {
                if let Some(above) = self.directory(parent.directory)? {
                    paths.push(text::join(&above, &parent.name));
                }
            }
        } else {
            for entry in self.fs.walk("/")? {
                let entry = entry?;
                if entry.metadata().number == number {
                    paths.push(entry.path().as_os_str().as_bytes().to_vec());
                }
            }
        }
        paths.sort_unstable();
        Ok(paths)
    }

    /// The path of a directory, by parent pointers; `None` if they do not lead to the root.
    fn directory(&self, mut number: InodeNumber) -> Result<Option<Vec<u8>>, Error> {
        let mut names = Vec::new();
        while number != self.fs.root() {
            let Some(parent) = parents(self.volume, number)?.pop() else { return Ok(None) };
            if names.len() == DEEPEST {
                return Ok(None);
            }
            names.push(parent.name);
            number = parent.directory;
        }
        let all = names.iter().rev();
        Ok(Some(all.fold(Vec::new(), |above, name| text::join(&above, name))))
    }
}

fn parents(volume: &Volume, number: InodeNumber) -> Result<Vec<Parent>, Error> {
    let inode = volume.inode(number).map_err(Error::into_damage)?;
    let inode = inode.read();
    ops::parents(volume, &inode)
}

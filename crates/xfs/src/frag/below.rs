//! The inodes of one directory tree.

use crate::dir::Position;
use crate::error::Error;
use crate::format::FileType;
use crate::ops;
use crate::units::InodeNumber;
use crate::volume::Volume;
use std::collections::HashSet;

/// This inode and, if it is a directory, all below it.
///
/// # Errors
/// A directory is damaged, or the device failed.
pub fn below(volume: &Volume, top: InodeNumber) -> Result<HashSet<InodeNumber>, Error> {
    let mut inodes = HashSet::from([top]);
    let mut waiting = vec![top];
    while let Some(number) = waiting.pop() {
        let inode = volume.inode(number).map_err(Error::into_damage)?;
        let inode = inode.read();
        if inode.file_type() != FileType::Directory {
            continue;
        }
        ops::entries(volume, &inode, Position::START, |entry| {
            // A damaged volume may have circles.
            if inodes.insert(entry.inode) {
                waiting.push(entry.inode);
            }
            true
        })?;
    }
    Ok(inodes)
}

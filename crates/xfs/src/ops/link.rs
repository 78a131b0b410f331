//! A further name for a file.

use super::locks::{self, Locked};
use super::rename::expect_same_project;
use super::unlink::affected;
use super::{add_link, lookup, path_text};
use crate::bmap::worst_case;
use crate::dir;
use crate::error::{Error, ErrorKind};
use crate::format::{FileType, NLINK_MAX, Timestamp};
use crate::inode_allocation::unlinked;
use crate::log::Work;
use crate::units::InodeNumber;
use crate::volume::Volume;

/// Gives an inode, which is no directory, the name `name` in the directory `parent`. One that
/// [`create_unlinked`](super::create_unlinked) made without a name gets its first.
///
/// # Errors
/// The name exists; the inode is a directory, is gone, has lost its last name, or has too many; no space; a damaged
/// structure; the device failed.
pub fn link(
    volume: &Volume,
    number: InodeNumber,
    parent: InodeNumber,
    name: &[u8],
    now: Timestamp,
) -> Result<(), Error> {
    dir::check_name(name)?;
    let mut trans = volume.begin_for(Work::Link)?;
    let mut inodes = Locked::new(volume, &[number, parent])?;
    locks::expect_directory(inodes.read(parent))?;
    inodes.read(parent).expect_mutable(false)?;
    let inode = inodes.read(number);
    if inode.file_type() == FileType::Directory {
        let what = "is a directory, which cannot have another name";
        let (path, kind) = (format!("inode {number}"), ErrorKind::NotPermitted);
        return Err(Error::WrongKind { path, what, kind });
    }
    if inode.memory.is_going {
        return Err(Error::Stale { inode: number });
    }
    inode.expect_in_use()?;
    if inode.core.nlink == 0 && !inode.memory.awaits_name {
        return Err(Error::NotFound(format!("inode {number}, which has lost its last name")));
    }
    inode.expect_mutable(true)?;
    expect_same_project(inodes.read(parent), inode)?;
    if inode.core.nlink >= NLINK_MAX {
        return Err(Error::TooManyLinks(format!("inode {number} has too many links")));
    }
    if lookup(volume, inodes.read(parent), name)?.is_some() {
        return Err(Error::Exists(path_text(name)));
    }
    trans.reserve(worst_case::entry(&trans) + worst_case::parent_pointer(&trans))?;
    let mut groups = affected(volume, inodes.read(parent))?;
    groups.extend(affected(volume, inodes.read(number))?);
    trans.lock_groups(groups)?;
    trans.begin_changes();
    let (inode, parent) = inodes.pair(number, parent);
    if std::mem::take(&mut inode.memory.awaits_name) {
        let (ag, agino) = volume.geometry().split_inode(number);
        trans.in_group(ag, |trans, group| unlinked::remove(trans, group, agino))?;
    }
    add_link(&mut trans, parent, name, inode)?;
    parent.set_modified(now);
    inode.set_changed(now);
    inodes.commit(trans)
}

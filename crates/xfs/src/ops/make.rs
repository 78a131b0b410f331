//! New files of all types on a volume in use.

use super::create::{NewInode, enter, free_slot, new_inode};
use super::inherit::Inherited;
use super::locks::{self, Locked};
use super::unlink::affected;
use super::{NamedValue, path_text};
use crate::bmap::ForkWriter;
use crate::bmap::worst_case;
use crate::dir;
use crate::error::Error;
use crate::file::{OpenFile, when_free, with_gathered};
use crate::format::{FileType, InodeFlags};
use crate::inode::{ForkKind, InodeGuard};
use crate::inode_allocation;
use crate::inode_allocation::unlinked;
use crate::log::Work;
use crate::symlink;
use crate::trans::Transaction;
use crate::units::InodeNumber;
use crate::volume::Volume;
use std::sync::Arc;

/// Creates `name` in the directory `parent`, with the inherited attributes: group, project, flags,
/// default access list. The times of the directory become those of the new inode's change.
///
/// # Errors
/// The name exists, or cannot be stored; no space; a damaged structure; the device failed.
pub fn make(
    volume: &Volume,
    parent: InodeNumber,
    name: &[u8],
    new: &NewInode<'_>,
) -> Result<InodeNumber, Error> {
    dir::check_name(name)?;
    with_room(volume, || try_make(volume, parent, name, new, |inode| inode.number))
}

/// As [`make`]; no other thread can remove the new file before it is open.
///
/// # Errors
/// As [`make`].
pub fn make_open(
    volume: &Arc<Volume>,
    parent: InodeNumber,
    name: &[u8],
    new: &NewInode<'_>,
) -> Result<OpenFile, Error> {
    dir::check_name(name)?;
    with_room(volume, || try_make(volume, parent, name, new, |inode| OpenFile::of(volume, inode)))
}

/// Does work that needs space, for an inode too: when it is free, and if need be with what files give
/// back.
pub(super) fn with_room<T>(
    volume: &Volume,
    attempt: impl Fn() -> Result<T, Error>,
) -> Result<T, Error> {
    with_gathered(volume, || when_free(volume, &attempt))
}

/// As [`make`], with what space is free now. `take` is given the
/// inode while it is still locked.
fn try_make<T>(
    volume: &Volume,
    parent: InodeNumber,
    name: &[u8],
    new: &NewInode<'_>,
    take: impl Fn(&mut InodeGuard) -> T,
) -> Result<T, Error> {
    let kind = check(new)?;
    let mut trans = volume.begin_for(Work::Create)?;
    let mut inodes = Locked::new(volume, &[parent])?;
    let directory = inodes.get(parent);
    locks::expect_directory(directory)?;
    directory.expect_mutable(false)?;
    if kind == FileType::Symlink && directory.core.flags.contains(InodeFlags::NOSYMLINKS) {
        let what = format!("{}: the directory allows no symbolic links", path_text(name));
        return Err(Error::NotPermitted(what));
    }
    // One search says that the name is absent and finds its place, which stays valid while the
    // directory is locked.
    let slot = free_slot(&mut trans, directory, name)?;
    let inherited = Inherited::from(volume, directory, kind)?;
    trans.reserve(worst_case(&trans, new, &inherited.attributes))?;
    trans.lock_groups(affected(volume, directory)?)?;
    let Some(number) =
        inode_allocation::find(&mut trans, Some(parent), kind == FileType::Directory)?
    else {
        return Err(inode_allocation::no_room(trans));
    };
    trans.begin_changes();
    let mut inode = enter(&mut trans, directory, (slot, name), &inherited.apply(new), number)?;
    inherited.give(&mut trans, &mut inode)?;
    directory.set_modified(new.times.change);
    trans.commit(&mut [directory, &mut inode])?;
    Ok(take(&mut inode))
}

/// Creates a file without a name, and opens it: near the directory that it may get a name in later,
/// by [`link`](super::link). Without one it is freed when it is closed, or after a crash.
///
/// # Errors
/// As [`make`].
pub fn create_unlinked(
    volume: &Arc<Volume>,
    near: InodeNumber,
    new: &NewInode<'_>,
) -> Result<OpenFile, Error> {
    if check(new)? == FileType::Directory {
        return Err(Error::Invalid("a directory cannot be without a name".into()));
    }
    with_room(volume, || try_create_unlinked(volume, near, new))
}

/// As [`create_unlinked`], with what space is free now.
fn try_create_unlinked(
    volume: &Arc<Volume>,
    near: InodeNumber,
    new: &NewInode<'_>,
) -> Result<OpenFile, Error> {
    let kind = check(new)?;
    let mut trans = volume.begin_for(Work::Create)?;
    let mut inodes = Locked::new(volume, &[near])?;
    let directory = inodes.get(near);
    locks::expect_directory(directory)?;
    let inherited = Inherited::from(volume, directory, kind)?;
    trans.reserve(worst_case(&trans, new, &inherited.attributes))?;
    let Some(number) = inode_allocation::find(&mut trans, Some(near), false)? else {
        return Err(inode_allocation::no_room(trans));
    };
    trans.begin_changes();
    let new = inherited.apply(new);
    let mut inode = new_inode(&trans, number, Some(near), kind, &new)?;
    inode.core.nlink = 0;
    if kind == FileType::Symlink {
        symlink::write(&mut ForkWriter::new(&mut trans, &mut inode, ForkKind::Data), new.target)?;
    }
    let mut inode = volume.insert_inode(inode);
    inode.memory.awaits_name = true;
    inherited.give(&mut trans, &mut inode)?;
    let (ag, agino) = volume.geometry().split_inode(number);
    trans.in_group(ag, |trans, group| unlinked::insert(trans, group, agino))?;
    trans.commit(&mut [&mut inode])?;
    Ok(OpenFile::of(volume, &mut inode))
}

/// The type of a new inode, once it is known that it can be stored.
pub(super) fn check(new: &NewInode<'_>) -> Result<FileType, Error> {
    let kind = new.file_type()?;
    if kind == FileType::Symlink {
        symlink::refuse(new.target)?;
    }
    if matches!(kind, FileType::Character | FileType::Block) && new.device.encode().is_none() {
        let (major, minor) = (new.device.major, new.device.minor);
        return Err(Error::Invalid(format!(
            "device {major}:{minor}: XFS stores majors below 16384 and minors below 262144"
        )));
    }
    Ok(kind)
}

/// Blocks that creating the inode with these attributes may take.
pub(super) fn worst_case(
    trans: &Transaction<'_>,
    new: &NewInode<'_>,
    attributes: &[NamedValue],
) -> u64 {
    let mut blocks =
        worst_case::inode(trans) + worst_case::entry(trans) + worst_case::parent_pointer(trans);
    if !new.target.is_empty() {
        blocks += worst_case::symlink(trans, new.target.len());
    }
    attributes
        .iter()
        .fold(blocks, |blocks, (_, value)| blocks + worst_case::attribute(trans, value.len()))
}

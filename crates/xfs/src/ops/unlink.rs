//! Taking names away (docs/algorithms/names.md#units).

use super::locks::{self, Locked};
use super::{lookup_in_use, path_text};
use crate::attr::parent::{self as parent_pointer, ParentPointer};
use crate::bmap::worst_case;
use crate::bmap::{self, ForkReader, ForkWriter};
use crate::dir;
use crate::error::{Error, ErrorKind};
use crate::file::{free_now, groups, is_small, reclaim};
use crate::format::{FileType, NLINK_PINNED, Timestamp};
use crate::inode::{BlocksFrozen, DataLock, ForkKind, Inode, InodeGuard, InodeState};
use crate::inode_allocation::unlinked;
use crate::log::Work;
use crate::trans::Transaction;
use crate::units::{AgNumber, InodeNumber};
use crate::volume::Volume;
use std::sync::Arc;

/// Removes `name`, which is no directory, from the directory `parent`; returns the inode it stood
/// for. An inode without names is freed: at once, or when its last opening is dropped, or after a
/// crash.
///
/// # Errors
/// There is no such name, or it is a directory; a damaged structure; the device failed.
pub fn unlink(
    volume: &Volume,
    parent: InodeNumber,
    name: &[u8],
    now: Timestamp,
) -> Result<InodeNumber, Error> {
    remove_name(volume, parent, name, false, now)
}

/// Removes the empty directory `name` from the directory `parent`; returns its inode.
///
/// # Errors
/// There is no such name; it is no directory, or not empty; a damaged structure; the device
/// failed.
pub fn rmdir(
    volume: &Volume,
    parent: InodeNumber,
    name: &[u8],
    now: Timestamp,
) -> Result<InodeNumber, Error> {
    remove_name(volume, parent, name, true, now)
}

fn remove_name(
    volume: &Volume,
    parent: InodeNumber,
    name: &[u8],
    directory: bool,
    now: Timestamp,
) -> Result<InodeNumber, Error> {
    dir::check_name(name)?;
    let mut trans = volume.begin_for(Work::Remove)?;
    let (mut inodes, child) = lock_entry(volume, parent, name)?;
    check(volume, &inodes, (parent, child), name, directory)?;
    let gone = directory || inodes.read(child).core.nlink == 1;
    let mut plan = UnlinkPlan::of(volume, inodes.read(child), gone)?;
    let mut used = affected(volume, inodes.read(parent))?;
    used.extend(plan.groups(volume, inodes.read(child))?);
    trans.reserve_for_removal(2 * worst_case::removal(&trans));
    trans.lock_groups(used)?;
    trans.begin_changes();
    let (parent, inode) = inodes.pair(parent, child);
    take_entry(&mut trans, parent, name)?;
    if directory {
        parent.core.nlink -= 1;
    }
    parent.set_modified(now);
    plan.drop_name(&mut trans, inode, parent, name, now)?;
    inodes.commit(trans)?;
    drop(inodes);
    plan.finish(volume)?;
    Ok(child)
}

/// Locks a directory and what `name` stands for in it.
pub(super) fn lock_entry(
    volume: &Volume,
    parent: InodeNumber,
    name: &[u8],
) -> Result<(Locked, InodeNumber), Error> {
    let mut child = locks::entry(volume, &volume.inode(parent)?.read(), name)?;
    loop {
        let inodes = match Locked::new(volume, &[parent, child]) {
            Err(Error::Stale { inode }) if inode == child => {
                // Another thread removed it between the look and the lock, or the directory is
                // damaged.
                child = lookup_in_use(volume, &volume.inode(parent)?.read(), name)?
                    .ok_or_else(|| Error::NotFound(path_text(name)))?;
                continue;
            }
            locked => locked?,
        };
        let now = locks::entry(volume, inodes.read(parent), name)?;
        if now == parent {
            let what = format!("{} leads to the directory itself", path_text(name));
            return Err(Error::Inode { inode: parent, what });
        }
        if now == child {
            return Ok((inodes, child));
        }
        // Another thread replaced it between the two looks.
        child = now;
    }
}

/// Finds all that speaks against the removal.
fn check(
    volume: &Volume,
    inodes: &Locked,
    (parent, child): (InodeNumber, InodeNumber),
    name: &[u8],
    directory: bool,
) -> Result<(), Error> {
    let (parent, inode) = (inodes.read(parent), inodes.read(child));
    locks::expect_directory(parent)?;
    parent.expect_mutable(true)?;
    locks::expect_linked(inode)?;
    inode.expect_mutable(true)?;
    let wrong = |what, kind| Err(Error::WrongKind { path: path_text(name), what, kind });
    match (directory, inode.file_type() == FileType::Directory) {
        (true, true) => expect_empty(volume, inode, name),
        (true, false) => wrong("not a directory", ErrorKind::NotDirectory),
        (false, true) => wrong("is a directory", ErrorKind::IsDirectory),
        (false, false) => Ok(()),
    }
}

/// Refuses a directory with names in it.
pub(super) fn expect_empty(
    volume: &Volume,
    directory: &InodeState,
    name: &[u8],
) -> Result<(), Error> {
    let empty = dir::is_empty(&mut ForkReader::new(volume, directory, ForkKind::Data))?;
    if empty { Ok(()) } else { Err(Error::NotEmpty(path_text(name))) }
}

/// Takes a name that is there out of a directory.
pub(super) fn take_entry(
    trans: &mut Transaction<'_>,
    directory: &mut InodeState,
    name: &[u8],
) -> Result<(), Error> {
    let mut space = directory.space;
    let mut fork = ForkWriter::new(trans, directory, ForkKind::Data);
    let removed = dir::remove(&mut fork, name, &mut space)?;
    directory.space = space;
    directory.touch();
    removed.map(|_| ()).ok_or_else(|| Error::NotFound(path_text(name)))
}

/// The groups that a change of a directory, or of an inode's attributes, may give blocks back to:
/// those of the blocks, and those of the trees that map them.
pub(super) fn affected(volume: &Volume, inode: &InodeState) -> Result<Vec<AgNumber>, Error> {
    let mut groups = vec![volume.geometry().split_inode(inode.number).0];
    if inode.file_type() == FileType::Directory {
        groups.extend_from_slice(bmap::groups(volume, inode, ForkKind::Data)?);
    } else {
        bmap::tree_groups(volume, inode, ForkKind::Data, &mut groups)?;
    }
    groups.extend_from_slice(bmap::groups(volume, inode, ForkKind::Attr)?);
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

/// How an inode takes leave of one of its names.
pub(super) enum UnlinkPlan {
    /// It has others.
    Links,
    /// It is freed in the same transaction: it is not open, and no thread reads or writes it as
    /// long as its locks are held.
    Free { _locks: (DataLock, BlocksFrozen) },
    /// It is put on the list of unlinked inodes. It is open, or large, or being read or written
    /// now.
    List,
    /// It is on that list, and is to be freed now.
    Listed(Arc<Inode>),
}

impl UnlinkPlan {
    /// The way for a locked inode; `is_last` says that the name is its last.
    pub(super) fn of(volume: &Volume, inode: &InodeState, is_last: bool) -> Result<Self, Error> {
        if !is_last || inode.core.nlink == NLINK_PINNED {
            return Ok(Self::Links);
        }
        if inode.memory.opens > 0 || !is_small(volume, inode)? {
            return Ok(Self::List);
        }
        // Tried, not waited for: these locks come before the caller's in the order of ranks.
        let locks = inode.locks().try_all();
        Ok(locks.map_or(Self::List, |_locks| Self::Free { _locks }))
    }

    /// The groups that this uses.
    pub(super) fn groups(
        &self,
        volume: &Volume,
        inode: &InodeState,
    ) -> Result<Vec<AgNumber>, Error> {
        match self {
            Self::Free { .. } => groups(volume, inode),
            Self::Links | Self::List | Self::Listed(_) => affected(volume, inode),
        }
    }

    /// Does it: the entry `name` of `parent` is gone already.
    pub(super) fn drop_name(
        &mut self,
        trans: &mut Transaction<'_>,
        inode: &mut InodeGuard,
        parent: &InodeState,
        name: &[u8],
        now: Timestamp,
    ) -> Result<(), Error> {
        let geometry = trans.geometry();
        inode.set_changed(now);
        match self {
            Self::Links if inode.core.nlink == NLINK_PINNED => {}
            Self::Links => inode.core.nlink -= 1,
            _ => inode.core.nlink = 0,
        }
        if let Self::Free { .. } = self {
            return free_now(trans, inode);
        }
        if let Self::List = self {
            inode.keep_literal_area(trans.volume())?;
        }
        if geometry.features.parent_pointers() {
            let generation = parent.core.generation;
            let pointer = ParentPointer { name, parent: parent.number, generation };
            let mut fork = ForkWriter::new(trans, inode, ForkKind::Attr);
            parent_pointer::remove(&mut fork, &pointer)?;
        }
        if let Self::List = self {
            if inode.file_type() == FileType::Directory && parent.number != geometry.root_inode {
                // Nothing that was deleted leads to a directory whose number may be used again.
                let mut fork = ForkWriter::new(trans, inode, ForkKind::Data);
                dir::set_parent(&mut fork, geometry.root_inode)?;
            }
            let (ag, agino) = geometry.split_inode(inode.number);
            trans.in_group(ag, |trans, group| unlinked::insert(trans, group, agino))?;
            if inode.memory.opens == 0 {
                // It cannot be opened any more.
                inode.memory.is_going = true;
                *self = Self::Listed(inode.inode());
            }
        }
        Ok(())
    }

    /// Frees an inode that was only listed, once the transaction is committed and nothing is
    /// locked.
    pub(super) fn finish(self, volume: &Volume) -> Result<(), Error> {
        match self {
            Self::Listed(inode) => reclaim(volume, &inode),
            Self::Links | Self::Free { .. } | Self::List => Ok(()),
        }
    }
}

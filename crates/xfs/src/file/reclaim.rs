//! Freeing an inode that has no name any more: its blocks, in steps, then itself.
//!
//! A file in a few pieces goes in the transaction that takes its last name away. A larger one is
//! put on the list of unlinked inodes there, and each step after that leaves a sound volume: the
//! file is shorter, and still on the list. Recovery finds it there after a crash and goes on.

use crate::attr;
use crate::bmap::{self, ForkWriter};
use crate::error::Error;
use crate::format::{Extent, InodeFlags2};
use crate::inode::{ForkContent, ForkKind, Inode, InodeGuard, InodeState, file_locks};
use crate::inode_allocation;
use crate::inode_allocation::unlinked;
use crate::trans::Transaction;
use crate::units::{AgInode, AgNumber, FileBlock, InodeNumber};
use crate::volume::Volume;
use std::sync::Arc;

/// Extents that one transaction frees.
const STEP: usize = 16;

/// Extents that one transaction frees of a file whose blocks may be shared: each may touch many
/// reference counts.
const STEP_SHARED: usize = 2;

/// Frees an inode that is on its group's list of unlinked inodes and that is not used any more; one
/// that another thread has freed meanwhile is no error. The caller has no transaction open, and
/// holds no lock of an inode.
///
/// # Errors
/// It has a name, or is on no list; a damaged structure; the device failed.
pub(crate) fn reclaim(volume: &Volume, inode: &Arc<Inode>) -> Result<(), Error> {
    let _counted = volume.files().reclaims.begin();
    let locks = file_locks(inode);
    let _data = locks.lock_data();
    keep_literal_area(volume, inode)?;
    loop {
        // What writers and readers of its blocks have under way is done, and no more comes.
        let _frozen = locks.freeze_blocks();
        // Looked at before the transaction: the thread that freed it may have closed the volume.
        // Only the thread that holds its data locked frees it.
        if inode.read().core.mode == 0 {
            return Ok(());
        }
        let mut trans = volume.begin_accepted(volume.longest_log_bytes())?;
        let mut inode = InodeGuard::new(inode);
        let number = inode.number;
        if inode.core.nlink != 0 {
            return Err(Error::Invalid(format!("inode {number} has a name and is not freed")));
        }
        inode.memory.discard();
        let (ag, agino) = volume.geometry().split_inode(number);
        if is_small(volume, &inode)? {
            trans.lock_groups(groups(volume, &inode)?)?;
            trans.begin_changes();
            trans.in_group(ag, |trans, group| unlinked::remove(trans, group, agino))?;
            free_now(&mut trans, &mut inode)?;
            return trans.commit(&mut [&mut inode]);
        }
        let kind = next_fork(volume, &inode)?;
        trans.lock_groups(step_groups(volume, &inode, kind)?)?;
        trans.begin_changes();
        shorten(&mut trans, &mut inode, kind)?;
        trans.commit(&mut [&mut inode])?;
    }
}

/// Keeps what the inode has, before the first step takes something away.
fn keep_literal_area(volume: &Volume, inode: &Inode) -> Result<(), Error> {
    let mut inode = inode.write();
    if inode.core.mode == 0 { Ok(()) } else { inode.keep_literal_area(volume) }
}

/// Frees all inodes without a name, open or not; returns how many there were.
///
/// # Errors
/// A damaged structure; the device failed.
pub(crate) fn free_orphans(volume: &Volume) -> Result<u64, Error> {
    let mut count = 0;
    for ag in (0..volume.geometry().ag_count).map(AgNumber) {
        // Each goes off its list, so the head is another one the next time.
        while let Some(number) = first_orphan(volume, ag)? {
            match volume.inode(number) {
                Ok(inode) => reclaim(volume, &inode)?,
                // The thread that let go of it last has freed it meanwhile.
                Err(Error::Stale { .. }) if first_orphan(volume, ag)? != Some(number) => continue,
                // The list led to it.
                Err(error) => return Err(error.into_damage()),
            }
            count += 1;
        }
    }
    Ok(count)
}

/// An inode at the head of a list of those without a name.
///
/// # Errors
/// The headers of the group are damaged; the device failed.
pub(crate) fn first_orphan(volume: &Volume, ag: AgNumber) -> Result<Option<InodeNumber>, Error> {
    // Waits, so there is a guard.
    let Some(mut guard) = volume.lock_group(ag, true)? else { return Ok(None) };
    let mut heads = guard.state().agi.unlinked.iter();
    let head = heads.find(|head: &&AgInode| !head.is_null());
    Ok(head.map(|head| volume.geometry().inode_number(ag, *head)))
}

/// Whether one transaction can free the inode with all its blocks.
///
/// # Errors
/// A mapping tree is damaged, or the device failed.
pub(crate) fn is_small(volume: &Volume, inode: &InodeState) -> Result<bool, Error> {
    let mut extents = 0;
    if is_shared(inode) && inode.data.extent_count() > 0 {
        return Ok(false);
    }
    for kind in [ForkKind::Data, ForkKind::Attr] {
        extents += bmap::extents(volume, inode, kind)?.len();
        let tree = inode.fork(kind).is_some_and(|f| matches!(f.content, ForkContent::Btree(..)));
        if tree {
            return Ok(false);
        }
    }
    Ok(extents <= STEP)
}

/// The groups that freeing a [small](is_small) inode uses.
///
/// # Errors
/// As for [`is_small`].
pub(crate) fn groups(volume: &Volume, inode: &InodeState) -> Result<Vec<AgNumber>, Error> {
    let mut groups = vec![volume.geometry().split_inode(inode.number).0];
    for kind in [ForkKind::Data, ForkKind::Attr] {
        let extents = bmap::extents(volume, inode, kind)?.as_slice();
        groups.extend(extents.iter().map(|extent| group_of(volume, extent)));
    }
    groups.sort_unstable();
    groups.dedup();
    Ok(groups)
}

/// Frees a [small](is_small) inode that is on no list.
///
/// # Errors
/// A damaged structure, or the device failed.
pub(crate) fn free_now(trans: &mut Transaction<'_>, inode: &mut InodeState) -> Result<(), Error> {
    for kind in [ForkKind::Data, ForkKind::Attr] {
        while bmap::remove(trans, inode, kind, FileBlock(0), FileBlock::NULL)? {}
    }
    inode_allocation::free(trans, inode)
}

/// The fork that the next step shortens: data goes first.
fn next_fork(volume: &Volume, inode: &InodeState) -> Result<ForkKind, Error> {
    let data = bmap::extents(volume, inode, ForkKind::Data)?;
    Ok(if !data.is_empty() { ForkKind::Data } else { ForkKind::Attr })
}

/// The groups that a step of this fork gives blocks back to: that of its last extent, and those of
/// its tree.
fn step_groups(
    volume: &Volume,
    inode: &InodeState,
    kind: ForkKind,
) -> Result<Vec<AgNumber>, Error> {
    let last = bmap::extents(volume, inode, kind)?.as_slice().last();
    let mut groups: Vec<_> = last.map(|extent| group_of(volume, extent)).into_iter().collect();
    bmap::tree_groups(volume, inode, kind, &mut groups)?;
    Ok(groups)
}

/// One step on the way: frees the last extents of a fork, as far as they lie in one group.
/// Attributes are forgotten before the blocks they are in are taken away.
fn shorten(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
) -> Result<(), Error> {
    let volume = trans.volume();
    let last = |inode: &InodeState, kind| -> Result<Option<Extent>, Error> {
        Ok(bmap::extents(volume, inode, kind)?.as_slice().last().copied())
    };
    if kind == ForkKind::Attr {
        attr::abandon(&mut ForkWriter::new(trans, inode, ForkKind::Attr))?;
    }
    // The block of the empty leaf is left to the last step.
    let from = FileBlock(if kind == ForkKind::Attr { 1 } else { 0 });
    let mut group = None;
    for _ in 0..if is_shared(inode) { STEP_SHARED } else { STEP } {
        let Some(extent) = last(inode, kind)?.filter(|extent| extent.end() > from) else { break };
        if *group.get_or_insert(group_of(volume, &extent)) != group_of(volume, &extent) {
            break;
        }
        bmap::remove(trans, inode, kind, from, FileBlock::NULL)?;
    }
    inode.core.size = 0;
    inode.touch();
    Ok(())
}

/// Whether other files may have blocks of this one.
fn is_shared(inode: &InodeState) -> bool {
    inode.core.flags2.contains(InodeFlags2::REFLINK)
}

fn group_of(volume: &Volume, extent: &Extent) -> AgNumber {
    volume.geometry().split_block(extent.start).0
}

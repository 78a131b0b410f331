//! Adds and removes mappings, in memory, in the inode or its tree, and in the reverse mapping.

use super::tree::MapTree;
use super::{Added, Removed, convert};
use crate::ag::GroupState;
use crate::alloc;
use crate::btree::{Cursor, Lookup};
use crate::error::Error;
use crate::format::{Extent, RmapFlags, RmapOwner, RmapRecord};
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{AgNumber, FileBlock, InodeNumber};

/// Runs `work` in a group that the transaction must be able to lock.
///
/// # Errors
/// Those of `work`; or another thread holds the group and waiting could deadlock.
pub(super) fn in_group<T>(
    trans: &mut Transaction<'_>,
    ag: AgNumber,
    work: impl FnOnce(&mut Transaction<'_>, &mut GroupState) -> Result<T, Error>,
) -> Result<T, Error> {
    trans.in_group(ag, work)
}

/// Reverse mapping of an extent of a fork.
fn mapping(
    trans: &Transaction<'_>,
    inode: InodeNumber,
    kind: ForkKind,
    extent: Extent,
) -> RmapRecord {
    let mut flags = RmapFlags::empty();
    if kind == ForkKind::Attr {
        flags |= RmapFlags::ATTR_FORK;
    }
    if extent.unwritten {
        flags |= RmapFlags::UNWRITTEN;
    }
    let (_, start) = trans.geometry().split_block(extent.start);
    let owner = RmapOwner::inode(inode);
    RmapRecord { start, len: extent.len, owner, offset: extent.offset, flags }
}

/// Maps an extent whose blocks were allocated, at file blocks that are not mapped.
///
/// # Errors
/// The tree is damaged, no space for the tree, or the device failed.
pub fn add(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    extent: Extent,
) -> Result<(), Error> {
    super::extents(trans.volume(), inode, kind)?;
    let fork = inode.fork_mut(kind);
    let extents = fork.extents.get_mut().expect("read above");
    let added = extents.add(extent);
    let count = extents.len() as u64;
    inode.core.nblocks += u64::from(extent.len);
    if let ForkContent::Btree(_, stored) = &mut inode.fork_mut(kind).content {
        *stored = count;
        add_to_tree(trans, inode, kind, added)?;
    } else {
        convert::to_tree_if_needed(trans, inode, kind)?;
    }
    let record = mapping(trans, inode.number, kind, extent);
    let (ag, _) = trans.geometry().split_block(extent.start);
    in_group(trans, ag, |trans, group| {
        // The reverse-mapping tree may split: its free list must be able to feed it.
        alloc::fill_free_list(trans, group)?;
        crate::ag::rmap::add(trans, group, record)
    })
}

/// Does to the tree what was done to the list.
fn add_to_tree(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    added: Added,
) -> Result<(), Error> {
    let owner = inode.number;
    let missing = |extent: Extent| Error::Inode {
        inode: owner,
        what: format!("extent {extent:?} is missing in the mapping tree"),
    };
    let block_size = trans.geometry().block_size();
    let mut tree = MapTree { trans, inode, kind };
    let mut cursor = Cursor::new();
    match added {
        Added::Inserted(new) => {
            cursor.lookup(&mut tree, &new.offset, Lookup::Equal)?;
            cursor.insert(&mut tree, &new)?.or_no_space(block_size)
        }
        Added::Grown(old, new) => {
            if !cursor.lookup(&mut tree, &old.offset, Lookup::Equal)? {
                return Err(missing(old));
            }
            cursor.update(&mut tree, &new)
        }
        Added::Joined(left, right, new) => {
            if !cursor.lookup(&mut tree, &right.offset, Lookup::Equal)? {
                return Err(missing(right));
            }
            cursor.delete(&mut tree)?;
            if !cursor.lookup(&mut tree, &left.offset, Lookup::Equal)? {
                return Err(missing(left));
            }
            cursor.update(&mut tree, &new)
        }
    }
}

/// Unmaps the last extent, or part of one, in `[from, to)` and frees its blocks; `false` if
/// nothing there is mapped. One call is one step: groups are locked one at a time.
///
/// # Errors
/// A tree is damaged, or the device failed.
pub fn remove(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    from: FileBlock,
    to: FileBlock,
) -> Result<bool, Error> {
    super::extents(trans.volume(), inode, kind)?;
    let fork = inode.fork_mut(kind);
    let extents = fork.extents.get_mut().expect("read above");
    let Some(removed) = extents.remove_last(from, to) else {
        return Ok(false);
    };
    let count = extents.len() as u64;
    inode.core.nblocks -= u64::from(removed.removed.len);
    if let ForkContent::Btree(_, stored) = &mut inode.fork_mut(kind).content {
        *stored = count;
        remove_from_tree(trans, inode, kind, removed)?;
        convert::to_list_if_possible(trans, inode, kind)?;
    } else {
        convert::to_tree_if_needed(trans, inode, kind)?;
    }
    let gone = removed.removed;
    let record = mapping(trans, inode.number, kind, gone);
    let (ag, start) = trans.geometry().split_block(gone.start);
    in_group(trans, ag, |trans, group| {
        alloc::fill_free_list(trans, group)?;
        crate::ag::rmap::remove(trans, group, record)?;
        alloc::free_in_group(trans, group, start, gone.len, None)
    })?;
    trans.forget_blocks(ag, start, gone.len);
    Ok(true)
}

/// Does to the tree what was done to the list.
fn remove_from_tree(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    removed: Removed,
) -> Result<(), Error> {
    let Removed { record, front, back, .. } = removed;
    let owner = inode.number;
    let block_size = trans.geometry().block_size();
    let mut tree = MapTree { trans, inode, kind };
    let mut cursor = Cursor::new();
    if !cursor.lookup(&mut tree, &record.offset, Lookup::Equal)? {
        let what = format!("extent {record:?} is missing in the mapping tree");
        return Err(Error::Inode { inode: owner, what });
    }
    match (front, back) {
        (None, None) => cursor.delete(&mut tree),
        (Some(rest), None) | (None, Some(rest)) => cursor.update(&mut tree, &rest),
        (Some(front), Some(back)) => {
            cursor.update(&mut tree, &front)?;
            cursor.lookup(&mut tree, &back.offset, Lookup::Equal)?;
            cursor.insert(&mut tree, &back)?.or_no_space(block_size)
        }
    }
}

//! The records of a fork, in memory and in its tree: added and cut, without a word to the groups.

use super::tree::MapTree;
use crate::btree::{Cursor, Lookup};
use crate::error::Error;
use crate::format::Extent;
use crate::inode::ExtentList;
use crate::inode::{Added, Removed};
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::trans::Transaction;
use crate::units::{FileBlock, InodeNumber};

/// The list of a fork, read if need be, to be changed.
pub(super) fn list<'i>(
    trans: &Transaction<'_>,
    inode: &'i mut InodeState,
    kind: ForkKind,
) -> Result<&'i mut ExtentList, Error> {
    super::extents(trans.volume(), inode, kind)?;
    inode.recent.forget();
    let extents = &mut inode.fork_mut(kind).extents;
    extents.get_or_init(ExtentList::default);
    Ok(extents.get_mut().expect("made above"))
}

/// Adds an extent at file blocks that are not mapped.
pub(super) fn insert(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    extent: Extent,
) -> Result<(), Error> {
    let extents = list(trans, inode, kind)?;
    let added = extents.add(extent);
    let count = extents.len() as u64;
    inode.fork_mut(kind).add_group(trans.geometry().split_block(extent.start).0);
    inode.core.nblocks += u64::from(extent.len);
    if is_tree(inode, kind, count) {
        insert_in_tree(trans, inode, kind, added)?;
    }
    Ok(())
}

/// Cuts the last extent, or the part of one, out of `[from, to)`; returns it.
pub(super) fn cut(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    (from, to): (FileBlock, FileBlock),
) -> Result<Option<Extent>, Error> {
    let extents = list(trans, inode, kind)?;
    let Some(removed) = extents.remove_last(from, to) else {
        return Ok(None);
    };
    let count = extents.len() as u64;
    let len = u64::from(removed.removed.len);
    let Some(blocks) = inode.core.nblocks.checked_sub(len) else {
        let what = format!("nblocks is {}, below the {len} of one extent", inode.core.nblocks);
        return Err(Error::Inode { inode: inode.number, what });
    };
    inode.core.nblocks = blocks;
    if is_tree(inode, kind, count) {
        cut_in_tree(trans, inode, kind, removed)?;
    }
    Ok(Some(removed.removed))
}

/// Gives a whole record other file blocks between its neighbours, where it merges with none of them.
/// It stays where it is in the list and in the tree, so this takes no space. `false` if it cannot be
/// done: nothing is changed then.
pub(super) fn relocate(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    (old, new): (Extent, Extent),
) -> Result<bool, Error> {
    let extents = list(trans, inode, kind)?;
    if !extents.relocate(&old, new) {
        return Ok(false);
    }
    let count = extents.len() as u64;
    if is_tree(inode, kind, count) {
        let owner = inode.number;
        let mut tree = MapTree { trans, inode, kind };
        let mut cursor = Cursor::new();
        if !cursor.lookup(&mut tree, &old.offset, Lookup::Equal)? {
            return Err(missing(owner, old));
        }
        cursor.update(&mut tree, &new)?;
    }
    Ok(true)
}

/// Whether the fork is a tree; if so, it has `count` records from now on.
fn is_tree(inode: &mut InodeState, kind: ForkKind, count: u64) -> bool {
    match &mut inode.fork_mut(kind).content {
        ForkContent::Btree(_, stored) => {
            *stored = count;
            true
        }
        _ => false,
    }
}

fn missing(inode: InodeNumber, extent: Extent) -> Error {
    Error::Inode { inode, what: format!("extent {extent:?} is missing in the mapping tree") }
}

/// Applies the change of the list to the tree.
fn insert_in_tree(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    added: Added,
) -> Result<(), Error> {
    let owner = inode.number;
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
                return Err(missing(owner, old));
            }
            cursor.update(&mut tree, &new)
        }
        Added::Joined(left, right, new) => {
            if !cursor.lookup(&mut tree, &right.offset, Lookup::Equal)? {
                return Err(missing(owner, right));
            }
            cursor.delete(&mut tree)?;
            if !cursor.lookup(&mut tree, &left.offset, Lookup::Equal)? {
                return Err(missing(owner, left));
            }
            cursor.update(&mut tree, &new)
        }
    }
}

/// Applies the change of the list to the tree.
fn cut_in_tree(
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
        return Err(missing(owner, record));
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

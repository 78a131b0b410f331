//! Changes of mappings: in memory, in the inode or its tree, and in the groups of the blocks.
//!
//! Each function is one change that leaves the volume consistent, and part of a transaction. What
//! could stop it is found by [`prepare`], before anything is changed: locks of groups, and space
//! for the tree.

use super::convert::{fit_form, list_capacity};
use super::edit::{self, cut, insert};
use super::owner::{enter, leave, release, share, sharing};
use super::tree::blocks_around;
use crate::error::Error;
use crate::format::Extent;
use crate::group_tree::rmap::Sharing;
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::refcount;
use crate::trans::Transaction;
use crate::units::{AgNumber, FileBlock, FsBlock};
use smallvec::SmallVec;

/// Runs of shared blocks whose counts one change touches: each changes the tree of reference
/// counts, and the free space if it was the last one.
const SHARED_RUNS: usize = 8;

/// Maps extents whose blocks were allocated, at file blocks that are not mapped. The caller reserved
/// space for the tree, and locked the groups of tree blocks that could be freed: an extent that joins
/// its neighbours leaves fewer records than there were.
///
/// # Errors
/// The tree is damaged, no space for the tree, or the device failed.
pub fn add(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    new: &[Extent],
) -> Result<(), Error> {
    new.iter().try_for_each(|extent| insert(trans, inode, kind, *extent))?;
    fit_form(trans, inode, kind)?;
    new.iter().try_for_each(|extent| enter(trans, inode, kind, extent))
}

/// Unmaps the last extent, or a part of one, in `[from, to)` and gives up its blocks: those without
/// another owner become free. `false` if nothing there is mapped. One call is one bounded step.
///
/// # Errors
/// [`Error::NoSpace`] if an extent must be split and there is no space for its second half; nothing
/// is changed then. A tree is damaged, or the device failed.
pub fn remove(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    from: FileBlock,
    to: FileBlock,
) -> Result<bool, Error> {
    let extents = super::extents(trans.volume(), inode, kind)?;
    let Some((record, part)) = extents.last_in(from, to) else {
        return Ok(false);
    };
    // Of shared blocks perhaps only some in the middle of the record go at a time.
    let whole_tail = part.end() == record.end() && sharing(inode, kind) == Sharing::Excluded;
    let split = record.offset < part.offset && !whole_tail;
    prepare(trans, inode, kind, &[part.start], &[part.offset], u64::from(split))?;
    let part = bounded(trans, inode, kind, part)?;
    cut(trans, inode, kind, (part.offset, part.end()))?;
    fit_form(trans, inode, kind)?;
    release(trans, inode, kind, &part)?;
    Ok(true)
}

/// Maps `new`, whose blocks were allocated, in place of `old`: the same file blocks, one extent or
/// a part of one, which [`bounded`] has accepted. The blocks of `old` are given up.
///
/// # Errors
/// A tree is damaged, no space for the tree, or the device failed.
pub fn replace(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    old: Extent,
    new: Extent,
) -> Result<(), Error> {
    relocate(trans, inode, ForkKind::Data, old, new)
}

/// As [`replace`], of any fork.
///
/// # Errors
/// As for [`replace`].
pub(crate) fn relocate(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    old: Extent,
    new: Extent,
) -> Result<(), Error> {
    exchange(trans, inode, kind, (old, new), release)
}

/// Turns a part of an extent of file data from unwritten to written, or back.
///
/// # Errors
/// As for [`replace`].
pub fn convert(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    part: Extent,
) -> Result<(), Error> {
    let converted = Extent { unwritten: !part.unwritten, ..part };
    exchange(trans, inode, ForkKind::Data, (part, converted), leave)
}

/// Moves an extent of file data, or a part of one, to file blocks that are not mapped. Whole ones
/// that stay between their neighbours take no space.
///
/// # Errors
/// As for [`replace`].
pub fn shift(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    part: Extent,
    offset: FileBlock,
) -> Result<(), Error> {
    let new = Extent { offset, ..part };
    if !edit::relocate(trans, inode, ForkKind::Data, (part, new))? {
        return exchange(trans, inode, ForkKind::Data, (part, new), leave);
    }
    leave(trans, inode, ForkKind::Data, &part)?;
    enter(trans, inode, ForkKind::Data, &new)
}

/// Unmaps an extent or a part of one, and leaves its blocks allocated: another fork will map them.
///
/// # Errors
/// As for [`replace`].
pub fn detach(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    part: Extent,
) -> Result<(), Error> {
    cut(trans, inode, kind, (part.offset, part.end()))?;
    fit_form(trans, inode, kind)?;
    leave(trans, inode, kind, &part)
}

/// What becomes of the blocks of a mapping that goes: [`release`] or [`leave`].
type OldBlocks = fn(&mut Transaction<'_>, &InodeState, ForkKind, &Extent) -> Result<(), Error>;

/// Maps file blocks by `new` instead of `old`.
fn exchange(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    kind: ForkKind,
    (old, new): (Extent, Extent),
    old_blocks: OldBlocks,
) -> Result<(), Error> {
    cut(trans, inode, kind, (old.offset, old.end()))?;
    insert(trans, inode, kind, new)?;
    fit_form(trans, inode, kind)?;
    old_blocks(trans, inode, kind, &old)?;
    enter(trans, inode, kind, &new)
}

/// Maps blocks that another mapping has, too, in place of `old`: the same file blocks, one extent or
/// a part of one, or nothing. Both inodes carry the reflink flag, and [`bounded`] has accepted both.
///
/// # Errors
/// As for [`replace`].
pub fn replace_shared(
    trans: &mut Transaction<'_>,
    inode: &mut InodeState,
    old: Option<Extent>,
    new: Extent,
) -> Result<(), Error> {
    let kind = ForkKind::Data;
    if let Some(old) = old {
        cut(trans, inode, kind, (old.offset, old.end()))?;
    }
    insert(trans, inode, kind, new)?;
    fit_form(trans, inode, kind)?;
    if let Some(old) = old {
        release(trans, inode, kind, &old)?;
    }
    share(trans, &new)?;
    enter(trans, inode, kind, &new)
}

/// Prepares changes of a fork at the file blocks `at`: claims space for `records` more records in
/// its tree, and locks, in ascending order, the groups of `blocks` and of the tree blocks that
/// could be freed.
///
/// # Errors
/// [`Error::NoSpace`]; a damaged tree or group; the device failed.
pub fn prepare(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    blocks: &[FsBlock],
    at: &[FileBlock],
    records: u64,
) -> Result<(), Error> {
    let claim = tree_blocks(trans, inode, kind, records)?;
    if claim > 0 {
        trans.claim(claim)?;
    }
    let Some(fork) = inode.fork(kind) else { return Ok(()) };
    let is_tree = matches!(fork.content, ForkContent::Btree(..));
    let mut groups: SmallVec<[AgNumber; 4]> = SmallVec::new();
    let geometry = trans.geometry();
    let mut note = |block: FsBlock| groups.push(geometry.split_block(block).0);
    blocks.iter().copied().for_each(&mut note);
    if is_tree {
        for block in at {
            blocks_around(trans.volume(), inode, kind, *block, &mut note)?;
        }
    }
    groups.sort_unstable();
    groups.dedup();
    groups.into_iter().try_for_each(|ag| trans.in_group(ag, |_, _| Ok(())))
}

/// Blocks that `records` more records in the list or tree of a fork can make necessary.
///
/// # Errors
/// A damaged tree; the device failed.
pub fn tree_blocks(
    trans: &Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    records: u64,
) -> Result<u64, Error> {
    super::extents(trans.volume(), inode, kind)?;
    let Some(fork) = inode.fork(kind).filter(|_| records > 0) else { return Ok(0) };
    let fits = |count: u64| count <= list_capacity(trans, inode, kind) as u64;
    Ok(match &fork.content {
        ForkContent::Btree(root, _) => u64::from(root.level()) + 1 + records,
        _ if fits(fork.extent_count() as u64 + records) => 0,
        _ => 1 + records,
    })
}

/// The part at the front of an extent whose blocks one step may give up, or share once more. The
/// group of the blocks is locked; nothing is changed.
///
/// # Errors
/// [`Error::NoSpace`] if reference counts could not be stored; a damaged tree; the device failed.
pub fn bounded(
    trans: &mut Transaction<'_>,
    inode: &InodeState,
    kind: ForkKind,
    extent: Extent,
) -> Result<Extent, Error> {
    if sharing(inode, kind) == Sharing::Excluded {
        return Ok(extent);
    }
    let (ag, start) = trans.geometry().split_block(extent.start);
    let len = trans.in_group(ag, |trans, group| {
        refcount::check_room(trans, group)?;
        refcount::prefix(trans, group, start, extent.len, SHARED_RUNS)
    })?;
    Ok(Extent { len, ..extent })
}

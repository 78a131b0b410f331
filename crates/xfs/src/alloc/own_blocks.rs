//! Blocks that a group has for itself, its free list and its trees, moved in front of a block.

use super::freelist;
use super::tree::FreeSpaceBlocks;
use crate::btree::{Bnobt, BtreeKind, Cntbt, Cursor, Finobt, Inobt, Refcountbt, Rmapbt, WriteTree};
use crate::error::Error;
use crate::group::GroupState;
use crate::group_tree::{AgTree, BlockSource, FreeList, put_on_list, tree_blocks};
use crate::trans::Transaction;
use crate::units::AgBlock;
use crate::volume::Volume;

/// Blocks of the free list and of trees of a group that lie at or behind `end`. Those of the list
/// are all counted if one lies there.
///
/// # Errors
/// A tree is damaged, or the device failed.
pub(crate) fn own_blocks_behind(
    volume: &Volume,
    group: &GroupState,
    end: AgBlock,
) -> Result<u32, Error> {
    let listed = group.on_list(volume.geometry(), |block| block >= end);
    let mut count = listed.map_or(0, |_| group.agf.free_list_count);
    for_each_block_of_trees(volume, group, &mut |block| count += u32::from(block >= end))?;
    Ok(count)
}

/// Visits the blocks of the free list and of the trees of a group.
///
/// # Errors
/// A tree is damaged, or the device failed.
pub(crate) fn for_each_own_block(
    volume: &Volume,
    group: &GroupState,
    visit: &mut dyn FnMut(AgBlock),
) -> Result<(), Error> {
    group.list(volume.geometry()).into_iter().for_each(&mut *visit);
    for_each_block_of_trees(volume, group, visit)
}

fn for_each_block_of_trees(
    volume: &Volume,
    group: &GroupState,
    visit: &mut dyn FnMut(AgBlock),
) -> Result<(), Error> {
    tree_blocks::<Bnobt>(volume, group, &mut *visit)?;
    tree_blocks::<Cntbt>(volume, group, &mut *visit)?;
    tree_blocks::<Inobt>(volume, group, &mut *visit)?;
    let features = &volume.geometry().features;
    if features.rmapbt() {
        tree_blocks::<Rmapbt>(volume, group, &mut *visit)?;
    }
    if features.finobt() {
        tree_blocks::<Finobt>(volume, group, &mut *visit)?;
    }
    if features.reflink() {
        tree_blocks::<Refcountbt>(volume, group, &mut *visit)?;
    }
    Ok(())
}

/// Moves one of these blocks, and fills the free list; `false` if there is none. The group gives out
/// nothing at or behind `end`.
///
/// # Errors
/// There is no space in front of it; a tree is damaged, or the device failed.
pub(crate) fn move_own_block(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    end: AgBlock,
) -> Result<bool, Error> {
    freelist::fill(trans, group)?;
    if replace_on_list(trans, group, end)? {
        return Ok(true);
    }
    let features = &trans.geometry().features;
    let (finobt, rmapbt, reflink) = (features.finobt(), features.rmapbt(), features.reflink());
    Ok(relocate::<Bnobt, FreeList>(trans, group, end)?
        || relocate::<Cntbt, FreeList>(trans, group, end)?
        || (rmapbt && relocate::<Rmapbt, FreeList>(trans, group, end)?)
        || relocate::<Inobt, FreeSpaceBlocks>(trans, group, end)?
        || (finobt && relocate::<Finobt, FreeSpaceBlocks>(trans, group, end)?)
        || (reflink && relocate::<Refcountbt, FreeSpaceBlocks>(trans, group, end)?))
}

/// Replaces a block of the free list; `false` if none lies at or behind `end`.
fn replace_on_list(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    end: AgBlock,
) -> Result<bool, Error> {
    let geometry = trans.geometry();
    if group.on_list(geometry, |block| block >= end).is_none() {
        return Ok(false);
    }
    // Blocks leave at the front and come in at the end: there is one, so this ends.
    let block = loop {
        let block = group.take_from_list(geometry)?;
        if block >= end {
            break block;
        }
        put_on_list(trans, group, block)?;
    };
    // Trees that this changes take blocks from the list.
    let mut surplus = freelist::adjust(trans, group)?;
    surplus.push(block);
    freelist::release(trans, group, &surplus)?;
    freelist::fill(trans, group)?;
    Ok(true)
}

/// Moves one block of a tree; `false` if none lies at or behind `end`.
fn relocate<K, S>(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    end: AgBlock,
) -> Result<bool, Error>
where
    K: BtreeKind<Pointer = AgBlock>,
    S: BlockSource<K>,
    for<'t, 'v> AgTree<'t, 'v, K, S>: WriteTree<Kind = K, Error = Error>,
{
    let mut found = None;
    tree_blocks::<K>(trans.volume(), group, |block| {
        found = found.or((block >= end).then_some(block));
    })?;
    let Some(block) = found else { return Ok(false) };
    let block_size = trans.geometry().block_size();
    let mut tree = AgTree::<K, S>::new(trans, group);
    Cursor::<K>::new().relocate(&mut tree, block, AgBlock(0))?.or_no_space(block_size)?;
    Ok(true)
}

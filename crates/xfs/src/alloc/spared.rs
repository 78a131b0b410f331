//! Blocks that were spared, taken where they are.

use super::freelist;
use super::mode::{Mode, allocate_in_group};
use crate::btree::{BlockKey, Bnobt, Cursor, Lookup};
use crate::error::Error;
use crate::format::{AllocRecord, Extent, RmapOwner};
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::space::{Pool, Request};
use crate::trans::Transaction;

/// Blocks that a group must have free and not spared, for its free list and for a split of each tree.
const MARGIN: u32 = 64;

/// Makes sure that [`take_spared`] will take the blocks of an extent, in a transaction in which the trees of
/// the group may grow by so many blocks beside. Nothing is changed.
///
/// # Errors
/// Some of them are in use; [`Error::NoSpace`] if the trees of their group could not grow; a damaged tree;
/// the device failed.
pub(crate) fn check_spared(
    trans: &mut Transaction<'_>,
    extent: &Extent,
    growth: u32,
) -> Result<(), Error> {
    let (ag, start) = trans.geometry().split_block(extent.start);
    let block_size = trans.geometry().block_size();
    trans.in_group(ag, |trans, group| {
        let mut tree = AgTree::<Bnobt>::new(trans, group);
        let mut cursor = Cursor::<Bnobt>::new();
        let found = cursor.find(&mut tree, &BlockKey::at(start), Lookup::LessOrEqual)?;
        let end = u64::from(start.0) + u64::from(extent.len);
        let is_inside = |free: AllocRecord| u64::from(free.start.0) + u64::from(free.len) >= end;
        if !found.is_some_and(is_inside) {
            let what = format!("blocks {start} to {} of group {ag}", end - 1);
            return Err(Error::Invalid(format!("{what}: some of them are in use")));
        }
        let needed = MARGIN + growth;
        if group.agf.free_blocks.saturating_sub(group.busy.held_back()) < needed {
            return Err(Error::NoSpace { needed: needed.into(), block_size });
        }
        Ok(())
    })
}

/// Takes the blocks of an extent out of the free space; the caller maps them, and has
/// [made sure](check_spared) that they are free.
///
/// # Errors
/// They are not; a damaged tree; the device failed.
pub(crate) fn take_spared(trans: &mut Transaction<'_>, extent: &Extent) -> Result<(), Error> {
    let (ag, start) = trans.geometry().split_block(extent.start);
    let len = extent.len;
    trans.in_group(ag, |trans, group| {
        freelist::fill(trans, group)?;
        // They are counted as free no more since they are spared.
        trans.adopt(group.busy.end_sparing(AllocRecord { start, len }).into());
        trans.claim(len.into())?;
        let request = Request {
            user_data: true,
            owner: None,
            pool: Pool::FreeList,
            ..Request::metadata(extent.start, len, RmapOwner(0))
        };
        match allocate_in_group(trans, group, &request, Mode::Exact(start))? {
            Some(_) => Ok(()),
            None => Err(taken(group, extent)),
        }
    })
}

fn taken(group: &GroupState, extent: &Extent) -> Error {
    let what = format!("{} blocks cannot be taken, though they are free", extent.len);
    group.corrupt("bnobt", crate::units::AgBlock(0), &what)
}

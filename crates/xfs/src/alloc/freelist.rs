//! Admission to a group, and the free list that feeds its trees.
//!
//! Before anything changes the free-space or reverse-mapping trees of a group, its free list must
//! hold enough blocks for the worst case of splits. Algorithms reference, sections 2.3 and 2.4.

use super::request::{Pool, Request};
use super::{Candidate, by_size, free, take};
use crate::ag::GroupState;
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
use crate::trans::Transaction;
use crate::units::{AgBlock, FsBlock};

/// Blocks per group that no request may take: four to refill the free list, four for a split of a
/// mapping tree.
const SET_ASIDE: u32 = 8;

/// Blocks that the free list must hold now.
fn needed(trans: &Transaction<'_>, group: &GroupState) -> u32 {
    let limits = trans.volume().heights();
    let tree = |level: u32, limit: u32| 2 * (level + 1).min(limit) - 2;
    let mut need =
        tree(group.agf.bnobt.levels, limits.alloc) + tree(group.agf.cntbt.levels, limits.alloc);
    if trans.geometry().features.rmapbt() {
        need += tree(group.agf.rmapbt.levels, limits.rmap);
    }
    need
}

/// Whether the group can serve the request; fills the free list and returns the longest extent
/// that may be given, at most the request's.
pub(super) fn admit(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
) -> Result<Option<u32>, Error> {
    if available(trans, group, request).is_none() {
        return Ok(None);
    }
    fill(trans, group)?;
    let Some(available) = available(trans, group, request) else {
        return Ok(None);
    };
    Ok(Some(request.max_len.min(available)))
}

/// Blocks that a request may take from the group at most; `None` if it must not take any.
fn available(trans: &Transaction<'_>, group: &GroupState, request: &Request) -> Option<u32> {
    let agf = &group.agf;
    let need = needed(trans, group);
    let mut reserved = group.reserved.outstanding(agf, &group.agi, request.pool);
    if request.pool == Pool::Ordinary {
        reserved += SET_ASIDE;
    }
    let want =
        request.min_len.checked_add(request.alignment - 1)?.checked_add(request.alignment_slop)?;
    let mut delta = need.saturating_sub(agf.free_list_count);
    delta += reserved.saturating_sub(agf.free_blocks - agf.longest);
    if agf.longest.saturating_sub(delta) < want {
        return None;
    }
    let left = (agf.free_blocks + agf.free_list_count.min(need))
        .checked_sub(reserved)?
        .checked_sub(need)?
        .checked_sub(request.min_left)?;
    (left >= want).then_some(left)
}

/// Brings the free list to the length it must have.
///
/// A surplus goes back to the free space: it exists only because a tree lost a level, and the
/// list still holds what the needed changes of the trees can take. A group without space keeps a
/// short list: freeing must always be possible.
///
/// # Errors
/// A tree is damaged.
pub fn fill(trans: &mut Transaction<'_>, group: &mut GroupState) -> Result<(), Error> {
    while group.agf.free_list_count > needed(trans, group) {
        let block = group.take_from_list(trans.geometry())?;
        crate::ag::rmap::remove_owner(trans, group, block, 1, RmapOwner::GROUP)?;
        free::insert(trans, group, AllocRecord { start: block, len: 1 })?;
    }
    loop {
        let need = needed(trans, group);
        if group.agf.free_list_count >= need {
            return Ok(());
        }
        let request = Request {
            pool: Pool::FreeList,
            min_len: 1,
            ..Request::metadata(FsBlock(0), need - group.agf.free_list_count, RmapOwner::GROUP)
        };
        let found = by_size::find(trans, group, &request, request.max_len)?;
        let Some(Candidate { start, len, .. }) = found else {
            return Ok(());
        };
        take::take(trans, group, &found.expect("matched above"))?;
        for block in start.0..start.0 + len {
            group.put_on_list(trans, AgBlock(block))?;
        }
        crate::ag::rmap::add_owner(trans, group, start, len, RmapOwner::GROUP)?;
    }
}

//! Grant to a group, and the free list that feeds its trees.
//!
//! Before anything changes the free-space or reverse-mapping trees of a group, its free list must
//! hold enough blocks for the worst case of splits. docs/algorithms/freelist.md#length and
//! docs/algorithms/freelist.md#admission.

use super::search::{Candidate, Found};
use super::{by_size, insert, take};
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
use crate::group::{GroupState, free_list_needed, longest_within};
use crate::group_tree::put_on_list;
use crate::space::Pool;
use crate::space::{BusyBlocks, Request};
use crate::trans::Transaction;
use crate::units::{AgBlock, FsBlock};
use smallvec::SmallVec;

/// Blocks that left the free list because it was too long; they become free space once the
/// operation at hand is done.
pub(super) type Surplus = SmallVec<[AgBlock; 2]>;

/// The space that a group gives to a request that it accepts.
#[derive(Debug)]
pub(super) struct Grant {
    /// Longest extent that may be given, at most the request's.
    pub(super) max_len: u32,
    pub(super) surplus: Surplus,
}

/// Blocks that a request may take from the group at most; `None` if it must not take any.
pub(super) fn available(
    trans: &Transaction<'_>,
    group: &GroupState,
    request: &Request,
) -> Option<u32> {
    let agf = &group.agf;
    let need = free_list_needed(trans.geometry(), trans.volume().heights(), &group.agf);
    let reserved = group.reserved.outstanding(agf, &group.agi, request.pool);
    let reserved = reserved.saturating_add(group.busy.held_back());
    let want =
        request.min_len.checked_add(request.alignment - 1)?.checked_add(request.alignment_slop)?;
    if longest_within(trans.geometry(), agf, need, reserved) < want {
        return None;
    }
    // A surplus of the free list does not count: it is about to leave it.
    let left = (agf.free_blocks + agf.free_list_count.min(need))
        .checked_sub(reserved)?
        .checked_sub(need)?
        .checked_sub(request.min_left)?;
    (left >= want.max(request.total)).then_some(left)
}

/// Whether the group can serve the request; if so, its free list has the length it must have.
pub(super) fn admit(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
) -> Result<Option<Grant>, Error> {
    let Some(available) = available(trans, group, request) else {
        return Ok(None);
    };
    let surplus = adjust(trans, group)?;
    // A short list and a surplus exclude each other: there is nothing to release.
    if group.agf.free_list_count
        < free_list_needed(trans.geometry(), trans.volume().heights(), &group.agf)
    {
        return Ok(None);
    }
    Ok(Some(Grant { max_len: request.max_len.min(available), surplus }))
}

/// Brings the free list to the length it must have; surplus blocks are returned and must be
/// [released](release).
///
/// A group without space keeps a short list: freeing must always be possible.
pub(super) fn adjust(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
) -> Result<Surplus, Error> {
    group.renew_list(trans.geometry(), |list| trans.edit(list));
    let mut surplus = Surplus::new();
    while group.agf.free_list_count
        > free_list_needed(trans.geometry(), trans.volume().heights(), &group.agf)
    {
        surplus.push(group.take_from_list(trans.geometry())?);
    }
    loop {
        let need = free_list_needed(trans.geometry(), trans.volume().heights(), &group.agf);
        if group.agf.free_list_count >= need {
            return Ok(surplus);
        }
        let request = Request {
            pool: Pool::FreeList,
            min_len: 1,
            ..Request::metadata(FsBlock(0), need - group.agf.free_list_count, RmapOwner::GROUP)
        };
        let mut found = by_size::find(trans, group, &request, request.max_len)?;
        if found == Found::OnlyBusy {
            // Where a block is taken off the list, it is checked whether it is busy.
            let request = Request { busy: BusyBlocks::Take, ..request };
            found = by_size::find(trans, group, &request, request.max_len)?;
        }
        let Found::Extent(candidate) = found else {
            return Ok(surplus);
        };
        take::take(trans, group, &candidate)?;
        let Candidate { start, len, .. } = candidate;
        for block in start.0..start.0 + len {
            put_on_list(trans, group, AgBlock(block))?;
        }
        crate::group_tree::rmap::add_owner(trans, group, start, len, RmapOwner::GROUP)?;
    }
}

/// Gives blocks that were too much for the free list back to the free space.
///
/// This changes the trees that the list feeds. It still holds what that takes: the surplus was
/// counted against the trees as they were.
pub(super) fn release(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    surplus: &[AgBlock],
) -> Result<(), Error> {
    for start in surplus {
        let freed = AllocRecord { start: *start, len: 1 };
        crate::group_tree::rmap::remove_owner(trans, group, freed.start, 1, RmapOwner::GROUP)?;
        insert::insert(trans, group, freed)?;
    }
    Ok(())
}

/// Brings the free list of a group to the length it must have before its trees are changed.
///
/// # Errors
/// A tree is damaged.
pub fn fill(trans: &mut Transaction<'_>, group: &mut GroupState) -> Result<(), Error> {
    let surplus = adjust(trans, group)?;
    if !surplus.is_empty() {
        release(trans, group, &surplus)?;
        // The release may have taken blocks of the list.
        let left = adjust(trans, group)?;
        release(trans, group, &left)?;
    }
    Ok(())
}

//! When no extent has the full length: the longest one, and as the last resort a block of the free
//! list.
//!
//! docs/algorithms/allocation.md#small-mode.

use super::search::Search;
use crate::btree::{Cntbt, Cursor};
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
use crate::group::GroupState;
use crate::group_tree::{AgTree, rmap};
use crate::space::Pool;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// What there is instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Small {
    /// The longest free extent; the cursor is at it.
    Record(AllocRecord),
    /// This block, taken from the free list.
    FromList(AgBlock),
    /// Nothing acceptable.
    Nothing,
}

/// Looks back from a cursor that a lookup left behind the last record of the tree.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    cursor: &mut Cursor<Cntbt>,
    search: &Search<'_>,
) -> Result<Small, Error> {
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    let request = search.request;
    let longest = cursor.previous(&mut tree)?;
    if longest.map_or(0, |longest| longest.len) != group.agf.longest {
        let at = longest.map_or(AgBlock(0), |longest| longest.start);
        return Err(group.corrupt("cntbt", at, "the longest free extent is not that of the AGF"));
    }
    if let Some(longest) = longest {
        if longest.len >= request.min_len {
            return Ok(Small::Record(longest));
        }
    } else if request.min_len == 1
        && request.alignment == 1
        && request.pool != Pool::FreeList
        && group.agf.free_list_count > request.min_left
        && let Some(block) = take_from_list(trans, group, request.user_data)?
    {
        return Ok(Small::FromList(block));
    }
    Ok(Small::Nothing)
}

/// Takes a block from the free list for something that is no tree of the group.
fn take_from_list(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    user_data: bool,
) -> Result<Option<AgBlock>, Error> {
    let geometry = trans.geometry();
    let Some(block) = group.peek_at_list(geometry)? else { return Ok(None) };
    let one = AllocRecord { start: block, len: 1 };
    if user_data && group.busy.trim(one, 1, 1).len == 0 {
        return Ok(None);
    }
    group.take_from_list(geometry)?;
    if user_data {
        trans.forget_blocks(group.number, block, 1, 1);
    }
    rmap::remove_owner(trans, group, block, 1, RmapOwner::GROUP)?;
    Ok(Some(block))
}

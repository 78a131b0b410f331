//! Gives an extent back to the free space of its group.
//!
//! docs/algorithms/allocation.md#freeing.

use super::freelist;
use super::insert::insert;
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
use crate::group::GroupState;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Frees `len` blocks from `start`; with an owner, its reverse mapping goes first.
///
/// # Errors
/// The extent is free already, lies outside the group, or a tree is damaged.
pub fn free_in_group(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
    owner: Option<RmapOwner>,
) -> Result<(), Error> {
    let end = start.checked_add(len).filter(|end| end.0 <= group.agf.length);
    if end.is_none() || start <= trans.geometry().ag_header_last() {
        return Err(group.corrupt("free extent", start, "outside the group"));
    }
    let surplus = freelist::adjust(trans, group)?;
    if let Some(owner) = owner {
        crate::group_tree::rmap::remove_owner(trans, group, start, len, owner)?;
    }
    let freed = AllocRecord { start, len };
    insert(trans, group, freed)?;
    if let Some(checkpoint) = trans.volume().open_checkpoint() {
        group.busy.insert(freed, checkpoint);
    }
    freelist::release(trans, group, &surplus)?;
    Ok(())
}

//! The free end of the last group cut off.

use super::freelist;
use super::mode::{Mode, allocate_in_group};
use crate::error::Error;
use crate::group::GroupState;
use crate::space::{BusyBlocks, Pool, Request};
use crate::trans::Transaction;
use crate::units::{AgBlock, FsBlock};

/// Makes a group end at `length`: what lies behind is free, and leaves the trees and the headers.
///
/// # Errors
/// Something there is not free; a tree is damaged, or the device failed.
pub(crate) fn cut_tail(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    length: AgBlock,
) -> Result<(), Error> {
    let geometry = trans.geometry();
    let Some(len @ 1..) = group.agf.length.checked_sub(length.0) else { return Ok(()) };
    // A list that is long enough takes nothing while the tail goes.
    freelist::fill(trans, group)?;
    let request = Request {
        min_len: len,
        max_len: len,
        pool: Pool::FreeList,
        busy: BusyBlocks::Take,
        owner: None,
        ..Request::metadata(FsBlock(0), len, crate::format::RmapOwner::GROUP)
    };
    let taken = allocate_in_group(trans, group, &request, Mode::Exact(length))?;
    let listed = group.on_list(geometry, |block| block >= length);
    if taken.is_none() || listed.is_some() {
        let what = format!("group {}: blocks from {length} on are in use", group.number);
        return Err(Error::Invalid(what));
    }
    group.agf.length = length.0;
    group.agi.length = length.0;
    Ok(())
}

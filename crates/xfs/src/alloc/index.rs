//! The index of the free extents of a group, read from its by-block tree.

use crate::btree::{Bnobt, Cursor};
use crate::error::Error;
use crate::group::{FreeIndex, GroupState};
use crate::group_tree::AgTree;
use crate::trans::Transaction;
use crate::units::AgBlock;
use std::ops::ControlFlow;

/// Reads the by-block tree of a group.
///
/// # Errors
/// The tree is damaged or disagrees with the header.
pub(super) fn build(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
) -> Result<FreeIndex, Error> {
    let length = group.agf.length;
    let mut index = FreeIndex::new(length);
    let (mut end, mut blocks, mut bad) = (0, 0_u64, None);
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    Cursor::<Bnobt>::new().for_each(&mut tree, |record| {
        let record_end = record.start.0 + record.len;
        // Neighbours that touch would have been merged.
        if record.start.0 < end || (record.start.0 == end && end > 0) || record_end > length {
            bad = Some(record.start);
            return Ok(ControlFlow::Break(()));
        }
        end = record_end;
        blocks += u64::from(record.len);
        index.push(record);
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(start) = bad {
        let what = "a free extent that overlaps or touches the one before it, or the group's end";
        return Err(group.corrupt("bnobt", start, what));
    }
    index.sum_up();
    let agree = blocks == u64::from(group.agf.free_blocks) && index.max() == group.agf.longest;
    if agree {
        Ok(index)
    } else {
        Err(group.corrupt("bnobt", AgBlock(0), "the free extents disagree with the AGF"))
    }
}

//! Reverse mappings of an intent, each step with the free list filled before it.

use crate::alloc;
use crate::btree::{Cursor, Rmapbt};
use crate::error::Error;
use crate::format::{RmapFlags, RmapKey, RmapRecord};
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::group_tree::rmap::{self, Sharing};
use crate::trans::Transaction;
use crate::units::{AgBlock, FileBlock};
use std::ops::ControlFlow;

/// Removes all reverse mappings of `len` blocks from `start`, of any owner.
///
/// # Errors
/// The tree is damaged.
pub(super) fn remove_any(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
) -> Result<(), Error> {
    if !trans.geometry().features.rmapbt() || len == 0 {
        return Ok(());
    }
    let (from, to) = (start.0, start.0.saturating_add(len));
    let (low, high) = (RmapKey::first_at(start), RmapKey::last_at(AgBlock(to - 1)));
    let mut records = Vec::new();
    Cursor::<Rmapbt>::new().for_each_in_range(
        &mut AgTree::<Rmapbt>::new(trans, group),
        &low,
        &high,
        |record| {
            records.push(record);
            Ok(ControlFlow::Continue(()))
        },
    )?;
    for record in records {
        let first = record.start.0.max(from);
        let end = record.start.0.saturating_add(record.len).min(to);
        let shift = if record.has_offset() { u64::from(first - record.start.0) } else { 0 };
        let offset = FileBlock(record.offset.0 + shift);
        let gone =
            RmapRecord { start: AgBlock(first), len: end.saturating_sub(first), offset, ..record };
        if gone.len > 0 {
            alloc::fill_free_list(trans, group)?;
            rmap::remove(trans, group, gone, Sharing::Possible)?;
        }
    }
    Ok(())
}

/// Turns a mapping of file data from unwritten to written or back; `record` is as it becomes. The
/// caller fills the free list before, and again between the two changes that this makes.
///
/// # Errors
/// No record covers the range in its old state, or the tree is damaged.
pub(super) fn convert(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    record: RmapRecord,
    sharing: Sharing,
) -> Result<(), Error> {
    let old = RmapRecord { flags: record.flags ^ RmapFlags::UNWRITTEN, ..record };
    rmap::remove(trans, group, old, sharing)?;
    alloc::fill_free_list(trans, group)?;
    rmap::add(trans, group, record, sharing)
}

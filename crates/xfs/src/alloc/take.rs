//! Takes a part of a free extent out of both free-space trees.
//!
//! docs/algorithms/allocation.md#tree-update.

use super::search::Candidate;
use super::{experiment, unowned};
use crate::btree::{BlockKey, Bnobt, Cntbt, Cursor, Lookup, SizeKey};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::trans::Transaction;
use crate::units::AgBlock;
use smallvec::SmallVec;

/// Removes the candidate's part from the trees and the counters of the group.
pub(super) fn take(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    candidate: &Candidate,
) -> Result<(), Error> {
    let Candidate { record, start, len } = *candidate;
    check_place(trans, group, record)?;
    let block_size = trans.geometry().block_size();
    let front = AllocRecord { start: record.start, len: start.0 - record.start.0 };
    let after = start.0 + len;
    let back = AllocRecord { start: AgBlock(after), len: record.start.0 + record.len - after };
    let rests = [front, back].into_iter().filter(|rest| rest.len > 0);

    // Both trees must know the extent before either is changed.
    let mut places = Cursor::<Bnobt>::new();
    find_place(trans, group, &mut places, record)?;
    unowned::check(trans, group, record)?;
    let mut sizes = Cursor::<Cntbt>::new();
    let mut last_leaf = remove_size(trans, group, &mut sizes, record)?;
    for rest in rests.clone() {
        last_leaf |= insert_size(trans, group, &mut sizes, rest)?;
    }
    if last_leaf {
        refresh_longest(trans, group, &mut sizes)?;
    }
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let cursor = &mut places;
    match (front.len > 0, back.len > 0) {
        (false, false) => cursor.delete(&mut tree)?,
        (true, false) => cursor.update(&mut tree, &front)?,
        (false, true) => cursor.update(&mut tree, &back)?,
        (true, true) => {
            cursor.update(&mut tree, &front)?;
            cursor.lookup(&mut tree, &BlockKey::at(back.start), Lookup::Equal)?;
            cursor.insert(&mut tree, &back)?.or_no_space(block_size)?;
        }
    }
    let Some(left) = group.agf.free_blocks.checked_sub(len) else {
        return Err(group.corrupt("AGF", start, "fewer blocks are counted free than are"));
    };
    group.agf.free_blocks = left;
    experiment::tell(trans, group, &[record], &rests.collect::<SmallVec<[_; 2]>>());
    Ok(())
}

/// Moves to the record of a free extent in the by-block tree, which must not overlap or touch
/// another.
fn find_place(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    cursor: &mut Cursor<Bnobt>,
    record: AllocRecord,
) -> Result<(), Error> {
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let found = cursor.find(&mut tree, &BlockKey::at(record.start), Lookup::Equal)?;
    let (before, behind) = cursor.beside(&tree);
    if found != Some(record) {
        return Err(group.corrupt("bnobt", record.start, "a free extent of the cntbt is missing"));
    }
    let ends_before =
        |left: &AllocRecord, right: &AllocRecord| left.end().is_some_and(|end| end < right.start);
    if before.is_none_or(|before| ends_before(&before, &record))
        && behind.is_none_or(|behind| ends_before(&record, &behind))
    {
        return Ok(());
    }
    Err(group.corrupt("bnobt", record.start, "a free extent overlaps or touches its neighbour"))
}

/// A record of a damaged tree may lie anywhere.
fn check_place(
    trans: &Transaction<'_>,
    group: &GroupState,
    record: AllocRecord,
) -> Result<(), Error> {
    let end = record.end().is_some_and(|end| end.0 <= group.agf.length);
    if end && record.start > trans.geometry().ag_header_last() {
        return Ok(());
    }
    Err(group.corrupt("bnobt", record.start, "a free extent outside the space of the group"))
}

fn size_key(record: AllocRecord) -> SizeKey {
    SizeKey { len: record.len, start: record.start }
}

/// Removes a free extent from the by-size tree; whether it was in the last leaf, where the longest
/// are.
pub(super) fn remove_size(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    cursor: &mut Cursor<Cntbt>,
    record: AllocRecord,
) -> Result<bool, Error> {
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    if !cursor.lookup(&mut tree, &size_key(record), Lookup::Equal)? {
        return Err(group.corrupt("cntbt", record.start, "a free extent of the bnobt is missing"));
    }
    let last_leaf = cursor.is_rightmost_leaf(&tree);
    cursor.delete(&mut tree)?;
    Ok(last_leaf)
}

/// Adds a free extent to the by-size tree; whether it is in the last leaf.
pub(super) fn insert_size(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    cursor: &mut Cursor<Cntbt>,
    record: AllocRecord,
) -> Result<bool, Error> {
    let block_size = trans.geometry().block_size();
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    if cursor.lookup(&mut tree, &size_key(record), Lookup::Equal)? {
        return Err(group.corrupt("cntbt", record.start, "a free extent is there twice"));
    }
    cursor.insert(&mut tree, &record)?.or_no_space(block_size)?;
    Ok(cursor.is_rightmost_leaf(&tree))
}

/// Sets the longest free extent from the last record of the by-size tree.
pub(super) fn refresh_longest(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    cursor: &mut Cursor<Cntbt>,
) -> Result<(), Error> {
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    let last = if cursor.seek_last(&mut tree)? { cursor.record(&tree)? } else { None };
    group.agf.longest = last.map_or(0, |record| record.len);
    Ok(())
}

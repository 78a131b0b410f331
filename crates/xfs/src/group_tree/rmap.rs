//! Reverse mappings: the owners of the blocks of a group.
//!
//! Every function does nothing on a volume without the reverse-mapping tree. Operations:
//! docs/algorithms/allocation.md#owners and docs/algorithms/reverse-mappings.md#changes; merge
//! rule: docs/format/reverse-mappings.md#merging. Before each of them the free list of the group
//! must be filled: the tree may split.
//!
//! Records of one block sort by owner. Where several files may share blocks, the records around a
//! mapping in the tree need not be its neighbours on the device: see [`Sharing`].

use super::AgTree;
use crate::btree::{Cursor, Lookup, Rmapbt};
use crate::error::Error;
use crate::format::{RmapFlags, RmapKey, RmapOwner, RmapRecord};
use crate::group::GroupState;
use crate::trans::Transaction;
use crate::units::{AgBlock, FileBlock};
use std::ops::ControlFlow;

/// Whether blocks may have further owners. Only data of files that carry the reflink flag may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// No: the records around a mapping are its neighbours.
    Excluded,
    /// Yes: neighbours are searched by their owner.
    Possible,
}

/// Records that a structure of the volume (not a file) owns `len` blocks from `start`.
///
/// # Errors
/// The tree is damaged.
pub fn add_owner(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
    owner: RmapOwner,
) -> Result<(), Error> {
    add(trans, group, structure(start, len, owner), Sharing::Excluded)
}

/// Removes the record that a structure of the volume owns `len` blocks from `start`.
///
/// # Errors
/// No record covers the range, or the tree is damaged.
pub fn remove_owner(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
    owner: RmapOwner,
) -> Result<(), Error> {
    remove(trans, group, structure(start, len, owner), Sharing::Excluded)
}

/// Adds a mapping, merged with the records that touch it.
///
/// # Errors
/// The tree is damaged.
pub fn add(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    new: RmapRecord,
    sharing: Sharing,
) -> Result<(), Error> {
    if !trans.geometry().features.rmapbt() {
        return Ok(());
    }
    if sharing == Sharing::Possible {
        return add_among_others(trans, group, new);
    }
    let block_size = trans.geometry().block_size();
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let mut cursor = Cursor::<Rmapbt>::new();
    let left = cursor.find(&mut tree, &new.key(), Lookup::LessOrEqual)?;
    if left.is_some_and(|left| left.key() == new.key()) {
        return Err(group.corrupt("rmapbt", new.start, "the mapping is there already"));
    }
    // One step on is the right neighbour, and where the new record belongs.
    let right = cursor.next(&mut tree)?;
    let joined = left.and_then(|left| merge(&left, &new));
    let union = joined.unwrap_or(new);
    let all = right.and_then(|right| merge(&union, &right));
    match (joined, all) {
        (Some(joined), Some(all)) => {
            cursor.delete(&mut tree)?;
            // The left neighbour is the last record at or before the new one still.
            cursor.lookup(&mut tree, &joined.key(), Lookup::Equal)?;
            cursor.update(&mut tree, &all)
        }
        (Some(joined), None) => {
            cursor.decrement(&mut tree)?;
            cursor.update(&mut tree, &joined)
        }
        (None, Some(all)) => cursor.update(&mut tree, &all),
        (None, None) => cursor.insert(&mut tree, &new)?.or_no_space(block_size),
    }
}

/// Removes a mapping that one record covers, and keeps the rest of that record.
///
/// # Errors
/// No record covers the range, or the tree is damaged.
pub fn remove(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    gone: RmapRecord,
    sharing: Sharing,
) -> Result<(), Error> {
    if !trans.geometry().features.rmapbt() {
        return Ok(());
    }
    let block_size = trans.geometry().block_size();
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let mut cursor = Cursor::<Rmapbt>::new();
    let record = cursor.find(&mut tree, &gone.key(), Lookup::LessOrEqual)?;
    let mut rest = record.and_then(|record| without(&record, &gone));
    if rest.is_none() && sharing == Sharing::Possible {
        rest = search(&mut cursor, &mut tree, &gone.key(), |record| without(record, &gone))?;
    }
    let Some((front, back)) = rest else {
        return Err(group.corrupt("rmapbt", gone.start, "no record covers the mapping"));
    };
    match (front, back) {
        (None, None) => cursor.delete(&mut tree),
        (None, Some(back)) if sharing == Sharing::Possible => {
            // Records of others may lie between its old place and its new one.
            cursor.delete(&mut tree)?;
            cursor.lookup(&mut tree, &back.key(), Lookup::Equal)?;
            cursor.insert(&mut tree, &back)?.or_no_space(block_size)
        }
        (Some(rest), None) | (None, Some(rest)) => cursor.update(&mut tree, &rest),
        (Some(front), Some(back)) => {
            cursor.update(&mut tree, &front)?;
            cursor.lookup(&mut tree, &back.key(), Lookup::Equal)?;
            cursor.insert(&mut tree, &back)?.or_no_space(block_size)
        }
    }
}

/// Adds a mapping of blocks that other files may own as well.
fn add_among_others(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    new: RmapRecord,
) -> Result<(), Error> {
    let block_size = trans.geometry().block_size();
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let mut cursor = Cursor::<Rmapbt>::new();
    let behind = RmapRecord {
        start: AgBlock(new.start.0.saturating_add(new.len)),
        offset: FileBlock(new.offset.0 + u64::from(new.len)),
        ..new
    };
    let right = cursor.find(&mut tree, &behind.key(), Lookup::Equal)?;
    let right = right.filter(|right| merge(&new, right).is_some());
    if right.is_some() {
        cursor.delete(&mut tree)?;
    }
    let with_right = right.and_then(|right| merge(&new, &right)).unwrap_or(new);
    let before = new.start.0.checked_sub(1).zip(new.offset.0.checked_sub(1));
    let joined = match before {
        Some((start, offset)) => {
            let last = RmapRecord { start: AgBlock(start), offset: FileBlock(offset), ..new };
            search(&mut cursor, &mut tree, &last.key(), |left| merge(left, &with_right))?
        }
        None => None,
    };
    if let Some(joined) = joined {
        return cursor.update(&mut tree, &joined);
    }
    if cursor.lookup(&mut tree, &with_right.key(), Lookup::Equal)? {
        return Err(group.corrupt("rmapbt", new.start, "the mapping is there already"));
    }
    cursor.insert(&mut tree, &with_right)?.or_no_space(block_size)
}

/// Moves to the first record over `key` that `accept` takes, past records of any owner.
fn search<T>(
    cursor: &mut Cursor<Rmapbt>,
    tree: &mut AgTree<'_, '_, Rmapbt>,
    key: &RmapKey,
    accept: impl Fn(&RmapRecord) -> Option<T>,
) -> Result<Option<T>, Error> {
    let mut found = None;
    cursor.for_each_in_range(tree, key, key, |record| {
        found = accept(&record);
        Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// The record of a structure that is no file.
fn structure(start: AgBlock, len: u32, owner: RmapOwner) -> RmapRecord {
    RmapRecord { start, len, owner, offset: FileBlock(0), flags: RmapFlags::empty() }
}

/// One record for two, if `right` continues `left` in every respect.
fn merge(left: &RmapRecord, right: &RmapRecord) -> Option<RmapRecord> {
    let contiguous = left.start.checked_add(left.len) == Some(right.start)
        && left.owner == right.owner
        && left.flags == right.flags
        && (!left.has_offset() || left.offset.0 + u64::from(left.len) == right.offset.0);
    let len = left.len.checked_add(right.len)?;
    contiguous.then_some(RmapRecord { len, ..*left })
}

/// The rest of `record` in front of and behind `gone`; `None` if it does not cover it.
fn without(
    record: &RmapRecord,
    gone: &RmapRecord,
) -> Option<(Option<RmapRecord>, Option<RmapRecord>)> {
    let skipped = gone.start.0.checked_sub(record.start.0)?;
    let behind = record.len.checked_sub(skipped)?.checked_sub(gone.len)?;
    let shift = |by: u32| if record.has_offset() { u64::from(by) } else { 0 };
    let covered = record.owner == gone.owner
        && record.flags == gone.flags
        && record.offset.0 + shift(skipped) == gone.offset.0;
    let front = (skipped > 0).then_some(RmapRecord { len: skipped, ..*record });
    let back = (behind > 0).then(|| RmapRecord {
        start: AgBlock(gone.start.0 + gone.len),
        len: behind,
        offset: FileBlock(record.offset.0 + shift(skipped + gone.len)),
        ..*record
    });
    covered.then_some((front, back))
}

//! Reverse mappings: who owns which blocks of a group.
//!
//! Every function does nothing on a volume without the reverse-mapping tree. Operations:
//! algorithms reference, sections 2.15 and 6.4; merge rule: format reference, section 4.4.

use super::{AgTree, GroupState};
use crate::btree::{Cursor, Lookup, Rmapbt};
use crate::error::Error;
use crate::format::{RmapFlags, RmapOwner, RmapRecord};
use crate::trans::Transaction;
use crate::units::{AgBlock, FileBlock};

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
    add(trans, group, structure(start, len, owner))
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
    remove(trans, group, structure(start, len, owner))
}

/// Adds a mapping, merged with the records that touch it.
///
/// # Errors
/// The tree is damaged.
pub fn add(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    new: RmapRecord,
) -> Result<(), Error> {
    if !trans.geometry().features.rmapbt() {
        return Ok(());
    }
    let block_size = trans.geometry().block_size();
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let mut cursor = Cursor::<Rmapbt>::new();
    let left = cursor.find(&mut tree, &new.key(), Lookup::LessOrEqual)?;
    let joined = left.and_then(|left| merge(&left, &new));
    let mut behind = Cursor::<Rmapbt>::new();
    let right = behind.find(&mut tree, &new.key(), Lookup::GreaterOrEqual)?;
    let union = joined.unwrap_or(new);
    let right = right.and_then(|right| merge(&union, &right));
    match (joined, right) {
        (Some(joined), Some(all)) => {
            behind.delete(&mut tree)?;
            // The left neighbour is the last record at or before the new one still.
            cursor.lookup(&mut tree, &joined.key(), Lookup::Equal)?;
            cursor.update(&mut tree, &all)
        }
        (Some(joined), None) => cursor.update(&mut tree, &joined),
        (None, Some(all)) => behind.update(&mut tree, &all),
        (None, None) => {
            if cursor.lookup(&mut tree, &new.key(), Lookup::Equal)? {
                return Err(group.corrupt("rmapbt", new.start, "the mapping is there already"));
            }
            cursor.insert(&mut tree, &new)?.or_no_space(block_size)
        }
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
) -> Result<(), Error> {
    if !trans.geometry().features.rmapbt() {
        return Ok(());
    }
    let block_size = trans.geometry().block_size();
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let mut cursor = Cursor::<Rmapbt>::new();
    let record = cursor.find(&mut tree, &gone.key(), Lookup::LessOrEqual)?;
    let Some((front, back)) = record.and_then(|record| without(&record, &gone)) else {
        return Err(group.corrupt("rmapbt", gone.start, "no record covers the mapping"));
    };
    match (front, back) {
        (None, None) => cursor.delete(&mut tree),
        (Some(rest), None) | (None, Some(rest)) => cursor.update(&mut tree, &rest),
        (Some(front), Some(back)) => {
            cursor.update(&mut tree, &front)?;
            cursor.lookup(&mut tree, &back.key(), Lookup::Equal)?;
            cursor.insert(&mut tree, &back)?.or_no_space(block_size)
        }
    }
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

/// What stays of `record` in front of and behind `gone`; `None` if it does not cover it.
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

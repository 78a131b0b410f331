//! Reverse mappings: who owns which blocks of a group.
//!
//! Every function does nothing on a volume without the reverse-mapping tree. Operations:
//! algorithms reference, sections 2.15 and 6.4; merge rule: format reference, section 4.4.

use super::{AgTree, GroupState};
use crate::btree::{Cursor, Lookup, Rmapbt};
use crate::error::Error;
use crate::format::{RmapOwner, RmapRecord, TreeKind};
use crate::trans::Transaction;
use crate::units::AgBlock;

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
    add(trans, group, RmapRecord::structure(start, len, owner))
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
    remove(trans, group, RmapRecord::structure(start, len, owner))
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
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let mut cursor = Cursor::<Rmapbt>::new();
    let mut union = new;
    let mut merged_left = false;
    if cursor.lookup(&mut tree, new.key(), Lookup::LessOrEqual)? {
        let left = cursor.record()?;
        if let Some(sum) = left.merged(&union) {
            (union, merged_left) = (sum, true);
        }
    }
    let mut right_cursor = Cursor::<Rmapbt>::new();
    let mut right_found = right_cursor.lookup(&mut tree, new.key(), Lookup::GreaterOrEqual)?;
    if right_found {
        let right = right_cursor.record()?;
        match union.merged(&right) {
            Some(sum) => union = sum,
            None => right_found = false,
        }
    }
    match (merged_left, right_found) {
        (true, true) => {
            right_cursor.delete(&mut tree)?;
            let found = cursor.lookup(&mut tree, new.key(), Lookup::LessOrEqual)?;
            debug_assert!(found, "the left neighbour is still there");
            cursor.update(&mut tree, union)?;
        }
        (true, false) => cursor.update(&mut tree, union)?,
        (false, true) => right_cursor.update(&mut tree, union)?,
        (false, false) => {
            if cursor.lookup(&mut tree, new.key(), Lookup::Equal)? {
                return Err(group.corrupt("rmapbt", new.start, "the mapping is there already"));
            }
            cursor.insert(&mut tree, new)?;
        }
    }
    Ok(())
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
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let mut cursor = Cursor::<Rmapbt>::new();
    let found = cursor.lookup(&mut tree, gone.key(), Lookup::LessOrEqual)?;
    let record = if found { Some(cursor.record()?) } else { None };
    let Some((record, (front, back))) =
        record.and_then(|record| Some((record, record.without(&gone)?)))
    else {
        return Err(group.corrupt("rmapbt", gone.start, "no record covers the mapping"));
    };
    debug_assert_eq!(record.owner, gone.owner);
    match (front, back) {
        (None, None) => cursor.delete(&mut tree)?,
        (Some(rest), None) | (None, Some(rest)) => cursor.update(&mut tree, rest)?,
        (Some(front), Some(back)) => {
            cursor.update(&mut tree, front)?;
            cursor.lookup(&mut tree, back.key(), Lookup::Equal)?;
            cursor.insert(&mut tree, back)?;
        }
    }
    Ok(())
}

//! Takes a part of a free extent out of both free-space trees.
//!
//! Algorithms reference, section 2.11.

use super::Candidate;
use crate::ag::{AgTree, GroupState};
use crate::btree::{BlockKey, Bnobt, Cntbt, Cursor, Lookup, SizeKey};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Removes the candidate's part from the trees and the counters of the group.
pub(super) fn take(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    candidate: &Candidate,
) -> Result<(), Error> {
    let Candidate { record, start, len } = *candidate;
    let block_size = trans.geometry().block_size();
    let front = AllocRecord { start: record.start, len: start.0 - record.start.0 };
    let after = start.0 + len;
    let back = AllocRecord { start: AgBlock(after), len: record.start.0 + record.len - after };

    remove_size(trans, group, record)?;
    for rest in [front, back] {
        if rest.len > 0 {
            insert_size(trans, group, rest)?;
        }
    }
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let mut cursor = Cursor::<Bnobt>::new();
    if cursor.find(&mut tree, &BlockKey::at(record.start), Lookup::Equal)? != Some(record) {
        return Err(group.corrupt("bnobt", record.start, "a free extent of the cntbt is missing"));
    }
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
    group.agf.free_blocks -= len;
    refresh_longest(trans, group)
}

fn size_key(record: AllocRecord) -> SizeKey {
    SizeKey { len: record.len, start: record.start }
}

/// Removes a free extent from the by-size tree.
pub(super) fn remove_size(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    record: AllocRecord,
) -> Result<(), Error> {
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    let mut cursor = Cursor::<Cntbt>::new();
    if !cursor.lookup(&mut tree, &size_key(record), Lookup::Equal)? {
        return Err(group.corrupt("cntbt", record.start, "a free extent of the bnobt is missing"));
    }
    cursor.delete(&mut tree)
}

/// Adds a free extent to the by-size tree.
pub(super) fn insert_size(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    record: AllocRecord,
) -> Result<(), Error> {
    let block_size = trans.geometry().block_size();
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    let mut cursor = Cursor::<Cntbt>::new();
    if cursor.lookup(&mut tree, &size_key(record), Lookup::Equal)? {
        return Err(group.corrupt("cntbt", record.start, "a free extent is there twice"));
    }
    cursor.insert(&mut tree, &record)?.or_no_space(block_size)
}

/// Sets the longest free extent from the last record of the by-size tree.
pub(super) fn refresh_longest(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
) -> Result<(), Error> {
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    let mut cursor = Cursor::<Cntbt>::new();
    let last = SizeKey { start: AgBlock::NULL, len: u32::MAX };
    let found = cursor.find(&mut tree, &last, Lookup::LessOrEqual)?;
    group.agf.longest = found.map_or(0, |record| record.len);
    Ok(())
}

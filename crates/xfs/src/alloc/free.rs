//! Gives an extent back to the free space of its group.
//!
//! Algorithms reference, section 2.13.

use super::freelist;
use super::take::{insert_size, refresh_longest, remove_size};
use crate::ag::{AgTree, GroupState};
use crate::btree::{BlockKey, Bnobt, Cursor, Lookup};
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
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
    freelist::fill(trans, group)?;
    if let Some(owner) = owner {
        crate::ag::rmap::remove_owner(trans, group, start, len, owner)?;
    }
    insert(trans, group, AllocRecord { start, len })
}

/// Enters a free extent into both trees, merged with its neighbours.
pub(super) fn insert(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    freed: AllocRecord,
) -> Result<(), Error> {
    let block_size = trans.geometry().block_size();
    let (left, right) = neighbours(trans, group, freed)?;
    let mut union = freed;
    for neighbour in [left, right].into_iter().flatten() {
        remove_size(trans, group, neighbour)?;
        union.len += neighbour.len;
        union.start = union.start.min(neighbour.start);
    }
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let mut cursor = Cursor::<Bnobt>::new();
    match (left, right) {
        (Some(left), Some(right)) => {
            cursor.lookup(&mut tree, &BlockKey::at(right.start), Lookup::Equal)?;
            cursor.delete(&mut tree)?;
            cursor.lookup(&mut tree, &BlockKey::at(left.start), Lookup::Equal)?;
            cursor.update(&mut tree, &union)?;
        }
        (Some(only), None) | (None, Some(only)) => {
            cursor.lookup(&mut tree, &BlockKey::at(only.start), Lookup::Equal)?;
            cursor.update(&mut tree, &union)?;
        }
        (None, None) => {
            if cursor.lookup(&mut tree, &BlockKey::at(freed.start), Lookup::Equal)? {
                return Err(group.corrupt("bnobt", freed.start, "the extent is free already"));
            }
            cursor.insert(&mut tree, &freed)?.or_no_space(block_size)?;
        }
    }
    insert_size(trans, group, union)?;
    group.agf.free_blocks += freed.len;
    refresh_longest(trans, group)
}

/// The free extents that touch `freed` on the left and on the right.
fn neighbours(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    freed: AllocRecord,
) -> Result<(Option<AllocRecord>, Option<AllocRecord>), Error> {
    let end = freed.start.0 + freed.len;
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let mut cursor = Cursor::<Bnobt>::new();
    let (mut left, mut right) = (None, None);
    let mut overlap = false;
    let key = BlockKey::at(freed.start);
    if let Some(record) = cursor.find(&mut tree, &key, Lookup::LessOrEqual)? {
        overlap |= record.start.0 + record.len > freed.start.0;
        left = (record.start.0 + record.len == freed.start.0).then_some(record);
    }
    if let Some(record) = cursor.find(&mut tree, &key, Lookup::GreaterOrEqual)? {
        overlap |= record.start.0 < end;
        right = (record.start.0 == end).then_some(record);
    }
    if overlap {
        return Err(group.corrupt("bnobt", freed.start, "a part of the extent is free already"));
    }
    Ok((left, right))
}

//! Enters an extent into the trees of the free space.

use super::experiment;
use super::take::{insert_size, refresh_longest, remove_size};
use crate::btree::{BlockKey, Bnobt, Cntbt, Cursor, Lookup};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::trans::Transaction;

/// Enters a free extent into both trees, merged with its neighbours.
pub(super) fn insert(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    freed: AllocRecord,
) -> Result<(), Error> {
    let block_size = trans.geometry().block_size();
    let mut cursor = Cursor::<Bnobt>::new();
    let (left, right) = neighbours(trans, group, &mut cursor, freed)?;
    let touching = [left, right].into_iter().flatten();
    let old: smallvec::SmallVec<[AllocRecord; 2]> = touching.collect();
    let union = AllocRecord {
        start: left.map_or(freed.start, |left| left.start),
        len: freed.len + old.iter().map(|record| record.len).sum::<u32>(),
    };
    let mut sizes = Cursor::<Cntbt>::new();
    for record in &old {
        remove_size(trans, group, &mut sizes, *record)?;
    }
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    match (left, right) {
        (Some(_), Some(_)) => {
            cursor.delete(&mut tree)?;
            cursor.decrement(&mut tree)?;
            cursor.update(&mut tree, &union)?;
        }
        (Some(_), None) => {
            cursor.decrement(&mut tree)?;
            cursor.update(&mut tree, &union)?;
        }
        (None, Some(_)) => cursor.update(&mut tree, &union)?,
        (None, None) => cursor.insert(&mut tree, &freed)?.or_no_space(block_size)?,
    }
    // The union is longer than the records it replaces: without it in the last leaf nothing changed
    // there.
    if insert_size(trans, group, &mut sizes, union)? {
        refresh_longest(trans, group, &mut sizes)?;
    }
    group.agf.free_blocks += freed.len;
    group.busy.became_free(freed);
    experiment::tell(trans, group, &old, &[union]);
    Ok(())
}

/// The free extents that touch `freed` on the left and on the right. The cursor is left at the
/// first extent behind `freed`, or where that would be.
fn neighbours(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    cursor: &mut Cursor<Bnobt>,
    freed: AllocRecord,
) -> Result<(Option<AllocRecord>, Option<AllocRecord>), Error> {
    let end = freed.start.0 + freed.len;
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let before = cursor.find(&mut tree, &BlockKey::at(freed.start), Lookup::LessOrEqual)?;
    let behind = cursor.next(&mut tree)?;
    // Of a damaged tree, the end of a record may lie anywhere.
    let before_end = before.map_or(0, |before| before.start.0.saturating_add(before.len));
    if before_end > freed.start.0 || behind.is_some_and(|behind| behind.start.0 < end) {
        return Err(group.corrupt("bnobt", freed.start, "a part of the extent is free already"));
    }
    let left = before.filter(|_| before_end == freed.start.0);
    let right = behind.filter(|behind| {
        behind.start.0 == end && behind.end().is_some_and(|end| end.0 <= group.agf.length)
    });
    Ok((left, right))
}

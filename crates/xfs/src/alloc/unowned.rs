//! Free space has no owner: the trees of a group are asked about an extent before it is given out.
//!
//! A record that overlaps blocks in use would have them overwritten. With the tree of reverse
//! mappings every owner is known. Without it the free space cannot be compared with files; what
//! the group itself stands on is compared all the same: its free list, the roots of its trees, the
//! journal.

use crate::btree::{Cursor, Lookup, Rmapbt};
use crate::error::Error;
use crate::format::{AllocRecord, RmapKey, RmapOwner, RmapRecord};
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::group_tree::is_shared;
use crate::trans::Transaction;
use crate::units::AgBlock;
use std::ops::ControlFlow;

/// Fails if a block of a free extent is in use.
pub(super) fn check(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    free: AllocRecord,
) -> Result<(), Error> {
    let user = if trans.geometry().features.rmapbt() {
        mapped(trans, group, free)?
    } else {
        standing(trans, group, free)
    };
    match user {
        None => Ok(()),
        Some((block, owner)) => {
            let what = format!("a free extent overlaps what belongs to {owner}");
            Err(group.corrupt("bnobt", block, &what))
        }
    }
}

/// The first block of the extent that the tree of reverse mappings knows, and its owner.
fn mapped(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    free: AllocRecord,
) -> Result<Option<(AgBlock, RmapOwner)>, Error> {
    let last = AgBlock(free.start.0 + (free.len - 1));
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let mut cursor = Cursor::<Rmapbt>::new();
    let before = cursor.find(&mut tree, &RmapKey::last_at(last), Lookup::LessOrEqual)?;
    let Some(before) = before else { return Ok(None) };
    let inside = |record: &RmapRecord| (record.start.max(free.start), record.owner);
    if ends_behind(&before, free.start) {
        return Ok(Some(inside(&before)));
    }
    // Only records that share blocks reach beyond one that starts after them.
    let shares = before.has_offset()
        && trans.geometry().features.reflink()
        && is_shared(trans, group, AgBlock(before.start.0 + (before.len - 1)))?;
    if !shares {
        return Ok(None);
    }
    let mut found = None;
    let mut tree = AgTree::<Rmapbt>::new(trans, group);
    let (low, high) = (RmapKey::first_at(free.start), RmapKey::last_at(last));
    cursor.for_each_in_range(&mut tree, &low, &high, |record| {
        found = Some(inside(&record)).filter(|_| ends_behind(&record, free.start));
        Ok(if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(found)
}

/// Of a damaged tree, the end of a record may lie anywhere.
fn ends_behind(record: &RmapRecord, block: AgBlock) -> bool {
    record.start.0.saturating_add(record.len) > block.0
}

/// The first block of the extent that the group stands on, as far as its headers tell, and the owner.
fn standing(
    trans: &Transaction<'_>,
    group: &GroupState,
    free: AllocRecord,
) -> Option<(AgBlock, RmapOwner)> {
    let (geometry, agf, agi) = (trans.geometry(), &group.agf, &group.agi);
    let end = free.start.0 + free.len;
    let inside = |block: AgBlock| free.start <= block && block.0 < end;
    let features = &geometry.features;
    let roots = [
        (true, agf.bnobt.block, RmapOwner::GROUP),
        (true, agf.cntbt.block, RmapOwner::GROUP),
        (features.reflink(), agf.refcountbt.block, RmapOwner::REFCOUNT_TREE),
        (true, agi.inobt.block, RmapOwner::INODE_TREES),
        (features.finobt(), agi.finobt.block, RmapOwner::INODE_TREES),
    ];
    if let Some((_, root, owner)) = roots.into_iter().find(|(is, root, _)| *is && inside(*root)) {
        return Some((root, owner));
    }
    let (log_group, log) = geometry.split_block(geometry.log_start);
    if log_group == group.number && log.0 < end && log.0 + geometry.log_blocks > free.start.0 {
        return Some((log.max(free.start), RmapOwner::LOG));
    }
    group.on_list(geometry, inside).map(|block| (block, RmapOwner::GROUP))
}

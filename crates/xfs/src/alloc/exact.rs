//! Exact mode: at the target block, or nothing.
//!
//! docs/algorithms/allocation.md#exact-mode.

use super::search::{Candidate, Found, Search};
use crate::btree::{BlockKey, Bnobt, Cursor, Lookup};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::space::Request;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// The free extent that contains `target`, if at least the least length follows in it.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    target: AgBlock,
    max_len: u32,
) -> Result<Found, Error> {
    let mut search = Search::new(group, request, target, max_len);
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let mut cursor = Cursor::<Bnobt>::new();
    let found = cursor.find(&mut tree, &BlockKey::at(target), Lookup::LessOrEqual)?;
    if let Some(record) = found {
        let end = record.start.0.saturating_add(record.len);
        // Of an extent with spared blocks another part might be usable as well.
        let area = match group.busy.spared().blocks() {
            0 => record,
            _ => AllocRecord { start: target, len: end.saturating_sub(target.0) },
        };
        let part = search.usable(group, area);
        let room = (part.start.0 + part.len).saturating_sub(target.0);
        if part.start <= target && room >= request.min_len {
            let len = request.fix_length(room.min(max_len), max_len);
            return Ok(Found::Extent(Candidate { record, start: target, len }));
        }
    }
    Ok(Found::Nothing)
}

//! By-size mode: the smallest extent that is long enough, else the longest usable one.
//!
//! docs/algorithms/allocation.md#by-size-mode.

use super::search::{Candidate, Found, Search};
use super::small::{self, Small};
use crate::btree::{Cntbt, Cursor, Lookup, SizeKey};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::space::Request;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Finds an extent by its length.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    max_len: u32,
) -> Result<Found, Error> {
    let mut search = Search::anywhere(group, request, max_len);
    let mut cursor = Cursor::<Cntbt>::new();
    let aligned = max_len.saturating_add(request.alignment - 1);
    let key = SizeKey { start: AgBlock(0), len: aligned };
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    if let Some(first) = cursor.find(&mut tree, &key, Lookup::GreaterOrEqual)? {
        let mut next = Some(first);
        while let Some(record) = next {
            let part = search.usable(group, record);
            if part.len >= max_len {
                return Ok(chosen(&search, record, part));
            }
            next = cursor.next(&mut AgTree::<Cntbt>::new(trans, group))?;
        }
        // All of them are long enough, so it is only that they are busy, or behind a limit.
        if search.saw_busy {
            return Ok(Found::OnlyBusy);
        }
        let mut tree = AgTree::<Cntbt>::new(trans, group);
        let last = if cursor.seek_last(&mut tree)? { cursor.record(&tree)? } else { None };
        let Some(longest) = last else { return Ok(Found::Nothing) };
        return best_of_shorter(trans, group, &mut search, &mut cursor, longest);
    }
    match small::find(trans, group, &mut cursor, &search)? {
        Small::Record(longest) => best_of_shorter(trans, group, &mut search, &mut cursor, longest),
        Small::FromList(block) => Ok(Found::FromList(block)),
        Small::Nothing => Ok(Found::Nothing),
    }
}

/// The extent with the longest usable part, from the longest one down.
fn best_of_shorter(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    search: &mut Search<'_>,
    cursor: &mut Cursor<Cntbt>,
    longest: AllocRecord,
) -> Result<Found, Error> {
    let (mut best, mut next) = (None::<(AllocRecord, AllocRecord)>, Some(longest));
    while let Some(record) = next {
        let best_len = best.map_or(0, |(_, part)| part.len);
        if record.len <= best_len || best_len >= search.max_len {
            break;
        }
        let part = search.usable(group, record);
        if part.len > best_len {
            best = Some((record, part));
        }
        next = cursor.previous(&mut AgTree::<Cntbt>::new(trans, group))?;
    }
    match best.filter(|(_, part)| part.len >= search.request.min_len) {
        Some((record, part)) => Ok(chosen(search, record, part)),
        None if search.saw_busy => Ok(Found::OnlyBusy),
        None => Ok(Found::Nothing),
    }
}

/// The front of the usable part.
fn chosen(search: &Search<'_>, record: AllocRecord, part: AllocRecord) -> Found {
    let len = search.request.fix_length(part.len.min(search.max_len), search.max_len);
    Found::Extent(Candidate { record, start: part.start, len })
}

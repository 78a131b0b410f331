//! By-size mode: the smallest extent that is long enough, else the longest there is.
//!
//! Algorithms reference, section 2.10.

use super::request::Request;
use super::{Candidate, aligned_part};
use crate::ag::{AgTree, GroupState};
use crate::btree::{Cntbt, Cursor, Lookup, SizeKey};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Extents shorter than wanted that are looked at for the one with the longest usable part.
const SHORT_LIMIT: usize = 64;

/// Finds an extent by its length; `None` if nothing of the least length is free.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    max_len: u32,
) -> Result<Option<Candidate>, Error> {
    let mut tree = AgTree::<Cntbt>::new(trans, group);
    let mut cursor = Cursor::<Cntbt>::new();
    let key = SizeKey { start: AgBlock(0), len: max_len };
    let mut found = cursor.find(&mut tree, &key, Lookup::GreaterOrEqual)?;
    while let Some(record) = found {
        let candidate = candidate(request, record, max_len);
        if let Some(candidate) = candidate
            && candidate.len == max_len
        {
            return Ok(Some(candidate));
        }
        found = cursor.next(&mut tree)?;
    }
    // Nothing gives the full length: from the longest down, the best usable part.
    let mut best: Option<Candidate> = None;
    for _ in 0..SHORT_LIMIT {
        let Some(record) = cursor.previous(&mut tree)? else {
            break;
        };
        if best.is_some_and(|best| record.len <= best.len) {
            break;
        }
        if let Some(candidate) = candidate(request, record, max_len)
            && best.is_none_or(|best| candidate.len > best.len)
        {
            best = Some(candidate);
        }
    }
    Ok(best)
}

/// The front of the usable part of a free extent, if that is long enough.
fn candidate(request: &Request, record: AllocRecord, max_len: u32) -> Option<Candidate> {
    let (start, len) = aligned_part(request, record)?;
    (len >= request.min_len).then(|| Candidate { record, start, len: len.min(max_len) })
}

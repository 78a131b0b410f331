//! Exact mode: at the target block, or nothing.
//!
//! Algorithms reference, section 2.6.

use super::Candidate;
use super::request::Request;
use crate::ag::{AgTree, GroupState};
use crate::btree::{BlockKey, Bnobt, Cursor, Lookup};
use crate::error::Error;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// The free extent that contains `target`, if at least the least length follows in it.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    target: AgBlock,
    max_len: u32,
) -> Result<Option<Candidate>, Error> {
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let mut cursor = Cursor::<Bnobt>::new();
    let key = BlockKey::at(target);
    let Some(record) = cursor.find(&mut tree, &key, Lookup::LessOrEqual)? else {
        return Ok(None);
    };
    let end = record.start.0 + record.len;
    let len = end.saturating_sub(target.0).min(max_len);
    Ok((len >= request.min_len).then_some(Candidate { record, start: target, len }))
}

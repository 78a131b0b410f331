//! Near mode with an index: the nearest extent of the full length, in a bounded number of probes.
//!
//! Free extents are disjoint, so the first that is long enough on each side of the hint is the
//! nearest on that side, whether its front or its end is taken; the nearer of the two sides wins.
//! If no extent of the group has the full length, the nearest of the longest is taken: size goes
//! before locality, as in the other variants. An extent of full length can still be unusable
//! (alignment, limits of place, busy blocks): a few further ones are tried on each side, then one
//! that must fit.

use super::index::FreeIndex;
use super::near::{self, Walk};
use super::request::Request;
use super::search::{Found, Search};
use crate::ag::GroupState;
use crate::error::Error;
use crate::format::AllocRecord;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Extents tried on each side of the hint.
const PROBES: usize = 8;

/// Finds an extent near `hint`, building the index of the group if it has none.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    hint: AgBlock,
    max_len: u32,
) -> Result<Found, Error> {
    let index = match group.index.take() {
        Some(index) => index,
        None => Box::new(FreeIndex::build(trans, group)?),
    };
    let mut search = Search::new(trans, group, request, hint, max_len);
    let wanted = max_len.min(index.max());
    if wanted >= request.min_len {
        left(&mut search, group, &index, wanted);
        right(&mut search, group, &index, wanted);
    }
    group.index = Some(index);
    if search.best.is_some() {
        return Ok(search.outcome());
    }
    // Nothing usable among the nearest: the search that sees everything.
    near::find(trans, group, request, hint, max_len, Walk::Combined)
}

/// Tries extents of at least `wanted` blocks to the left of the hint, the one around it included.
fn left(search: &mut Search<'_>, group: &GroupState, index: &FreeIndex, wanted: u32) {
    let mut bound = AgBlock(search.hint.0.saturating_add(1));
    for _ in 0..PROBES {
        let Some(extent) = index.last_before(bound, wanted) else { return };
        if search.consider(group, extent) {
            return;
        }
        bound = extent.start;
    }
    if let Some(extent) = index.last_before(bound, certain(search, wanted)) {
        search.consider(group, extent);
    }
}

/// Tries extents of at least `wanted` blocks to the right of the hint.
fn right(search: &mut Search<'_>, group: &GroupState, index: &FreeIndex, wanted: u32) {
    let mut bound = AgBlock(search.hint.0.saturating_add(1));
    for _ in 0..PROBES {
        let Some(extent) = index.first_from(bound, wanted) else { return };
        if search.consider(group, extent) || is_farther(search, extent) {
            return;
        }
        bound = AgBlock(extent.start.0 + 1);
    }
    if let Some(extent) = index.first_from(bound, certain(search, wanted)) {
        search.consider(group, extent);
    }
}

/// The length at which an extent fits however it lies.
fn certain(search: &Search<'_>, wanted: u32) -> u32 {
    wanted.saturating_add(search.request.alignment - 1)
}

/// Whether everything from `extent` on is farther than the best so far.
fn is_farther(search: &Search<'_>, extent: AllocRecord) -> bool {
    search.best.is_some_and(|best| {
        extent.start.0.abs_diff(search.hint.0) > best.start.0.abs_diff(search.hint.0)
    })
}

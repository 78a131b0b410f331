//! Near mode with an index: an extent of the full length close to the hint, in a bounded number of
//! probes, that leaves close space to those who need it.
//!
//! Free extents are disjoint, so the first that is long enough on each side of a block is the
//! nearest on that side, whether its front or its end is taken; the nearer of the two sides wins.
//! If no extent of the group has the full length, the nearest of the longest is taken: size goes
//! before locality, as in the other variants. An extent of full length can still be unusable
//! (alignment, limits of place, busy blocks): a few further ones are tried on each side, then one
//! that must fit.
//!
//! Whoever always takes the nearest leaves nothing near to whoever comes later. So
//! - inodes go where there is room for their files: to the nearest extent of at least half the
//!   longest one's length, not into the last gap beside those that were there before;
//! - file data that cannot begin at the hint leaves half its length around the hint to shorter
//!   extents, if there is a place within eight times its length: to a long extent that is near
//!   enough, to a short one it would be far.

use super::index::FreeIndex;
use super::near::{self, Walk};
use super::request::Request;
use super::search::{Found, Search};
use crate::ag::GroupState;
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Extents tried on each side of the hint.
const PROBES: usize = 8;

/// Inodes go to an extent of at least the longest one's length divided by this.
const ROOM_FOR_FILES: u32 = 2;

/// File data leaves its length divided by this on both sides of the hint to shorter extents.
const LEFT_TO_OTHERS: u32 = 2;

/// File data goes at most this many times its length away for it.
const REACH: u32 = 8;

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
        if request.owner == Some(RmapOwner::INODES) {
            nearest(&mut search, group, &index, wanted.max(index.max() / ROOM_FOR_FILES));
        }
        if search.best.is_none() {
            nearest(&mut search, group, &index, wanted);
        }
        if request.user_data {
            leave_room(&mut search, group, &index, wanted);
        }
    }
    group.index = Some(index);
    if search.best.is_some() {
        return Ok(search.outcome());
    }
    // Nothing usable among the nearest: the search that sees everything.
    near::find(trans, group, request, hint, max_len, Walk::Combined)
}

/// Tries the nearest extents of at least `wanted` blocks on both sides of the hint.
fn nearest(search: &mut Search<'_>, group: &GroupState, index: &FreeIndex, wanted: u32) {
    left(search, group, index, wanted);
    right(search, group, index, wanted);
}

/// Prefers an extent that is not so near that shorter ones would miss its place, if there is one on
/// either side within reach and the nearest does not begin at the hint.
fn leave_room(search: &mut Search<'_>, group: &GroupState, index: &FreeIndex, wanted: u32) {
    let (hint, room) = (search.hint.0, wanted / LEFT_TO_OTHERS);
    let Some((best, distance)) = search.best_and_distance() else { return };
    let around = best.record.start.0 <= hint
        && u64::from(best.record.start.0) + u64::from(best.record.len)
            >= u64::from(hint) + u64::from(wanted);
    if around || distance >= room {
        return;
    }
    let nearest = search.set_aside();
    let left = hint.checked_sub(room);
    let left = left.and_then(|at| index.last_before(AgBlock(at.saturating_add(1)), wanted));
    let right = index.first_from(AgBlock(hint.saturating_add(room).saturating_add(1)), wanted);
    for extent in [left, right].into_iter().flatten() {
        if extent.start.0.abs_diff(hint) <= wanted.saturating_mul(REACH) {
            search.consider(group, extent);
        }
    }
    if search.best.is_none() {
        search.put_back(nearest);
    }
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

//! Near mode with an index: an extent of the full length close to the hint, in a bounded number of
//! probes, that leaves close space to requests that need it.
//!
//! Free extents are disjoint, so the first that is long enough on each side of a block is the
//! nearest on that side, whether its front or its end is taken; the nearer of the two sides wins.
//! If no extent of the group has the full length, the nearest of the longest is taken: size goes
//! before locality, as in the other variants. An extent of full length can still be unusable
//! (alignment, limits of place, busy blocks): a few further ones are tried on each side, then one
//! that must fit.
//!
//! A search that always takes the nearest extent leaves nothing near to later requests. So
//! - inodes go where there is room for their files: to the nearest extent that is not short among
//!   those of the group, not into the last gap beside the inodes that were there before;
//! - file data that cannot begin at the hint leaves the blocks around it to shorter extents, for
//!   which a place farther away is a greater loss.
//!
//! Third, a file does not leave its group for extents that save it none ([`best`](super::best)).

use super::index;
use super::near::{self, Walk};
use super::search::{Found, Search};
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
use crate::group::FreeIndex;
use crate::group::GroupState;
use crate::space::Request;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Extents tried on each side of the hint.
const PROBES: usize = 8;

/// Inodes go to an extent of at least the longest one's length divided by this. With 8, files are
/// farther from their inodes than in near mode on volumes of 500 GiB with many free extents of
/// random lengths; with 2, there are more extents than in near mode on such volumes of 20 GiB.
const ROOM_FOR_FILES: u32 = 4;

/// File data stays away from a hint that it cannot begin at by its length divided by this. With 2,
/// files were farther from their inodes on clean volumes of 500 GiB than in near mode; without the
/// rule as few files as in near mode were within 1 MiB on volumes with many free extents.
const LEFT_TO_OTHERS: u32 = 4;

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
        None => Box::new(index::build(trans, group)?),
    };
    let mut search = Search::new(trans, group, request, hint, max_len);
    let wanted = max_len.min(index.max());
    if wanted >= request.min_len {
        if request.owner == Some(RmapOwner::INODES) {
            let roomy = wanted.max(index.max() / ROOM_FOR_FILES);
            nearest(&mut search, group, &index, (roomy, 0));
        } else if request.user_data && !index.is_free(search.hint, wanted) {
            nearest(&mut search, group, &index, (wanted, wanted / LEFT_TO_OTHERS));
        }
        if search.best.is_none() {
            nearest(&mut search, group, &index, (wanted, 0));
        }
    }
    group.index = Some(index);
    if search.best.is_some() {
        return Ok(search.outcome());
    }
    // Nothing usable among the nearest: the search that sees everything.
    near::find(trans, group, request, hint, max_len, Walk::Combined)
}

/// Tries the nearest extents of at least `wanted` blocks on both sides of the hint that do not begin
/// within `room` blocks of it.
fn nearest(
    search: &mut Search<'_>,
    group: &GroupState,
    index: &FreeIndex,
    (wanted, room): (u32, u32),
) {
    if let Some(last) = search.hint.0.checked_sub(room) {
        left(search, group, index, wanted, AgBlock(last.saturating_add(1)));
        if search.is_at_hint(wanted) {
            return;
        }
    }
    let first = search.hint.0.saturating_add(room).saturating_add(1);
    right(search, group, index, wanted, AgBlock(first));
}

/// Tries extents of at least `wanted` blocks that begin before `bound`, from there to the left.
fn left(
    search: &mut Search<'_>,
    group: &GroupState,
    index: &FreeIndex,
    wanted: u32,
    mut bound: AgBlock,
) {
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

/// Tries extents of at least `wanted` blocks that begin at `bound` or to the right of it.
fn right(
    search: &mut Search<'_>,
    group: &GroupState,
    index: &FreeIndex,
    wanted: u32,
    mut bound: AgBlock,
) {
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

//! Near mode: a long enough extent close to the target, by a bounded walk.
//!
//! Two cursors walk the by-block tree away from the target, one each way, and stop at the first
//! extent of the full length on their side, or at the end of their budget. The nearer of the two
//! wins. When neither finds one, the by-size tree decides: the smallest extent that is long
//! enough, else the longest there is. The rule for the place inside an extent is that of the
//! algorithms reference, section 2.5.

use super::request::Request;
use super::{Candidate, aligned_part};
use crate::ag::{AgTree, GroupState};
use crate::btree::{BlockKey, Bnobt, Cursor, Lookup};
use crate::error::Error;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Free extents looked at on each side of the target before the by-size tree is asked.
const WALK_LIMIT: usize = 64;

/// Finds an extent near `hint`; `None` if nothing of the least length is free.
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    hint: AgBlock,
    max_len: u32,
) -> Result<Option<Candidate>, Error> {
    let hint = match request.range {
        Some((low, high)) => hint.clamp(low, high),
        None => hint,
    };
    let before = walk(trans, group, request, hint, max_len, Side::Before)?;
    let after = walk(trans, group, request, hint, max_len, Side::After)?;
    let nearest = match (before, after) {
        (Some(before), Some(after)) => {
            Some(if before.distance(hint) <= after.distance(hint) { before } else { after })
        }
        (before, after) => before.or(after),
    };
    match nearest {
        Some(candidate) => Ok(Some(candidate)),
        None => super::by_size::find(trans, group, request, max_len),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// The first extent on one side of the hint that gives the full length.
fn walk(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    hint: AgBlock,
    max_len: u32,
    side: Side,
) -> Result<Option<Candidate>, Error> {
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    let mut cursor = Cursor::<Bnobt>::new();
    // An extent that starts at or before the hint, the one around it included, is on the left.
    let mut found = match side {
        Side::Before => cursor.find(&mut tree, &BlockKey::at(hint), Lookup::LessOrEqual)?,
        Side::After => {
            let next = BlockKey::at(AgBlock(hint.0.saturating_add(1)));
            cursor.find(&mut tree, &next, Lookup::GreaterOrEqual)?
        }
    };
    for _ in 0..WALK_LIMIT {
        let Some(record) = found else {
            break;
        };
        if let Some((start, len)) = aligned_part(request, record)
            && len >= max_len
            && let Some(place) = place(request, hint, max_len, start, len)
        {
            return Ok(Some(Candidate { record, start: place, len: max_len }));
        }
        found = match side {
            Side::Before => cursor.previous(&mut tree)?,
            Side::After => cursor.next(&mut tree)?,
        };
    }
    Ok(None)
}

/// Where inside the usable part `[start, start + len)` an extent of `want` blocks goes.
fn place(request: &Request, hint: AgBlock, want: u32, start: AgBlock, len: u32) -> Option<AgBlock> {
    let align = request.alignment;
    let (end, wanted_end) = (start.0 + len, u64::from(hint.0) + u64::from(want));
    let fits =
        |place: u32| place >= start.0 && u64::from(place) + u64::from(want) <= u64::from(end);
    let behind = start >= hint || (request.user_data && u64::from(end) < wanted_end);
    let place = if behind {
        start.0.checked_next_multiple_of(align)?
    } else if u64::from(end) >= wanted_end {
        // The hint lies inside: at it, or at the aligned block next to it.
        let up = hint.0.checked_next_multiple_of(align)?;
        if fits(up) { up } else { up.checked_sub(align)? }
    } else {
        (end - want) / align * align
    };
    let in_range = request.range.is_none_or(|(low, high)| place >= low.0 && place <= high.0);
    (fits(place) && in_range).then_some(AgBlock(place))
}

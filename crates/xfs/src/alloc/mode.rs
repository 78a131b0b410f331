//! One group: admission, search, and the change of the trees.
//!
//! Order of work: docs/algorithms/allocation.md#order-of-work.

use super::search::Found;
use super::{by_size, exact, experiment, freelist, near, take};
use crate::error::Error;
use crate::group::GroupState;
use crate::space::{Allocation, BusyBlocks, Request};
use crate::trans::Transaction;
use crate::units::AgBlock;

/// How to look for an extent inside one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At this block or not at all; without alignment.
    Exact(AgBlock),
    /// As close to this block as possible.
    Near(AgBlock),
    /// Wherever it fits best.
    BySize,
}

/// Allocates inside a group whose lock is held; `None` if the group cannot serve the request.
///
/// # Errors
/// Damaged trees, or the device failed. [`Error::Busy`] if all that would do was freed by
/// checkpoints that are not durable yet: the journal must be forced.
pub fn allocate_in_group(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    mode: Mode,
) -> Result<Option<Allocation>, Error> {
    if !accepts(trans, group, request) {
        return Ok(None);
    }
    Ok(serve(trans, group, request, mode)?.flatten())
}

/// Whether the group has room for the request. Nothing is changed.
pub(super) fn accepts(trans: &Transaction<'_>, group: &GroupState, request: &Request) -> bool {
    freelist::available(trans, group, request).is_some()
}

/// Allocates inside a group that [accepts](accepts) the request: the outer `None` if its free list
/// cannot be filled, the inner one if it has nothing that fits.
pub(super) fn serve(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    mode: Mode,
) -> Result<Option<Option<Allocation>>, Error> {
    let Some(admission) = freelist::admit(trans, group, request)? else { return Ok(None) };
    let mut found = search(trans, group, request, mode, admission.max_len)?;
    if found == Found::OnlyBusy && request.busy == BusyBlocks::LastResort {
        let request = Request { busy: BusyBlocks::Take, ..request.clone() };
        found = search(trans, group, &request, mode, admission.max_len)?;
    }
    let allocation = apply(trans, group, request, found)?;
    freelist::release(trans, group, &admission.surplus)?;
    if found == Found::OnlyBusy {
        let what = "the free space that would do waits for the journal";
        return Err(Error::Busy(format!("allocation group {}: {what}", group.number)));
    }
    Ok(Some(allocation))
}

fn search(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    mode: Mode,
    max_len: u32,
) -> Result<Found, Error> {
    match mode {
        Mode::Exact(target) => exact::find(trans, group, request, target, max_len),
        Mode::Near(hint) => match experiment::find(trans, group, request, hint, max_len)? {
            Some(found) => Ok(found),
            None => near::find(trans, group, request, hint, max_len),
        },
        Mode::BySize => by_size::find(trans, group, request, max_len),
    }
}

/// Takes the extent found out of the free space and records its owner.
fn apply(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    found: Found,
) -> Result<Option<Allocation>, Error> {
    let (start, len) = match found {
        Found::Extent(candidate) => {
            take::take(trans, group, &candidate)?;
            (candidate.start, candidate.len)
        }
        Found::FromList(block) => (block, 1),
        Found::Nothing | Found::OnlyBusy => return Ok(None),
    };
    if request.busy != BusyBlocks::Avoid {
        group.busy.reuse(start, len);
    }
    if let Some(owner) = request.owner {
        crate::group_tree::rmap::add_owner(trans, group, start, len, owner)?;
    }
    Ok(Some(Allocation { ag: group.number, start, len }))
}

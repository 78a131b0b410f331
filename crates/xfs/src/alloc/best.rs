//! Space for file data: the longest extent up to the length wanted, by ever weaker requests.
//!
//! Order of attempts: docs/algorithms/choice-of-group.md#attempts-for-file-data; at the end of a
//! file on striped storage, docs/algorithms/file-mapping.md#targets.

use super::experiment;
use super::groups;
use super::mode::{Mode, allocate_in_group};
use crate::error::Error;
use crate::group::max_usable;
use crate::space::{Allocation, Request};
use crate::trans::Transaction;
use crate::units::{AgNumber, FsBlock};

/// An allocation that reaches the end of a file, on storage with a stripe unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndOfFile {
    /// Stripe unit in blocks, at least 1.
    pub stripe_unit: u32,
    /// The target is behind the last extent of the file, as far as the new one is in the file.
    pub continues: bool,
}

/// Allocates one extent of up to `request.max_len` blocks near the target. `request.min_len` is
/// the least that is of any use, mostly 1; how much is insisted on is decided here, by the longest
/// extent that the groups have.
///
/// # Errors
/// Damaged trees or headers, or the device failed; [`Error::Busy`] as for
/// [`allocate`](super::allocate).
pub fn allocate_best(
    trans: &mut Transaction<'_>,
    request: &Request,
    end_of_file: Option<EndOfFile>,
) -> Result<Option<Allocation>, Error> {
    let geometry = trans.geometry();
    let max_len = request.max_len.min(max_usable(geometry)).max(request.min_len);
    let mut attempt = Request { max_len, ..request.clone() };
    if !trans.is_low_on_space() {
        let (ag, _) = geometry.split_block(request.target);
        let longest = insisted_on(trans, ag, max_len)?;
        attempt.min_len = longest.min(max_len).max(request.min_len);
        if let Some(end) = end_of_file.filter(|end| max_len >= end.stripe_unit) {
            let found = at_end_of_file(trans, &attempt, end, longest)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    loop {
        let found = groups::allocate(trans, &attempt)?;
        if found.is_some() {
            return Ok(found);
        }
        // Other threads may have taken the longest extent since it was looked for.
        let (ag, _) = geometry.split_block(request.target);
        let longest = groups::longest_anywhere(trans, ag, max_len)?.max(request.min_len);
        if longest >= attempt.min_len {
            return low_on_space(trans, &mut attempt, request.min_len);
        }
        attempt.min_len = longest;
    }
}

/// The length to insist on: that of the longest extent of all, or of the target's group `ag` if the
/// request takes no more extents of that length, and the near search stays in its group then.
fn insisted_on(trans: &Transaction<'_>, ag: AgNumber, max_len: u32) -> Result<u32, Error> {
    let longest = groups::longest_anywhere(trans, ag, max_len)?;
    let volume = trans.volume();
    if !experiment::stays_in_group(volume) || ag.0 >= trans.geometry().ag_count {
        return Ok(longest);
    }
    let own = volume.group_summary(ag).longest().unwrap_or(0);
    // If there is one in this group, there is one at all.
    let stays = own > 0 && max_len.div_ceil(own) <= max_len.div_ceil(longest);
    Ok(if stays { own } else { longest })
}

/// At the target if it continues the last extent, else at a stripe unit.
fn at_end_of_file(
    trans: &mut Transaction<'_>,
    attempt: &Request,
    end: EndOfFile,
    longest: u32,
) -> Result<Option<Allocation>, Error> {
    let (unit, max_len) = (end.stripe_unit, attempt.max_len);
    let mut aligned = Request { alignment: unit, ..attempt.clone() };
    let limit = if end.continues { max_len } else { max_len.saturating_add(unit) };
    if longest > unit && longest <= limit {
        // The longest extent need not start at a stripe unit.
        aligned.min_len = (longest - unit).max(1);
    }
    let (ag, block) = trans.geometry().split_block(attempt.target);
    if end.continues && ag.0 < trans.geometry().ag_count {
        let slop = (aligned.min_len + unit).saturating_sub(attempt.min_len + 1);
        let exact = Request { alignment_slop: slop, ..attempt.clone() };
        let found = trans.with_search(|trans| {
            let found = trans.with_group(ag, true, |trans, group| {
                allocate_in_group(trans, group, &exact, Mode::Exact(block))
            })?;
            Ok(found.flatten())
        })?;
        if found.is_some() {
            return Ok(found);
        }
    }
    groups::allocate(trans, &aligned)
}

/// Takes any extent, anywhere. From now on this transaction asks for no more.
fn low_on_space(
    trans: &mut Transaction<'_>,
    attempt: &mut Request,
    min_len: u32,
) -> Result<Option<Allocation>, Error> {
    if attempt.min_len > min_len {
        attempt.min_len = min_len;
        let found = groups::allocate(trans, attempt)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    attempt.total = min_len;
    attempt.target = FsBlock(0);
    trans.set_low_on_space();
    groups::allocate(trans, attempt)
}

//! The walk over the groups: the target's first, then the others in order.
//!
//! docs/algorithms/choice-of-group.md#iteration: near mode in the target's group, by size in the
//! others; a first pass that passes by groups whose lock another thread holds, then one that waits,
//! but never for a group below one that the transaction holds already. A near search that stays in
//! its group waits for the target's in the first. The first group that accepts the request decides: if
//! it has nothing that fits after all, the caller asks for less.

use super::experiment;
use super::mode::{self, Mode};
use crate::error::Error;
use crate::space::{Allocation, Request};
use crate::trans::Transaction;
use crate::units::AgNumber;

/// Allocates near the request's target, or anywhere; `None` if no group can serve the request.
///
/// # Errors
/// Damaged trees or headers, or the device failed. [`Error::Busy`] if all that would do waits for
/// the journal.
pub fn allocate(
    trans: &mut Transaction<'_>,
    request: &Request,
) -> Result<Option<Allocation>, Error> {
    trans.with_search(|trans| search(trans, request))
}

fn search(trans: &mut Transaction<'_>, request: &Request) -> Result<Option<Allocation>, Error> {
    let geometry = trans.geometry();
    let (target_group, target) = geometry.split_block(request.target);
    let count = trans.volume().allocating_groups();
    let start = if target_group.0 < count { target_group.0 } else { 0 };
    let stays = experiment::stays_in_group(trans.volume());
    for pass in [false, true] {
        for step in 0..count {
            let ag = AgNumber((start + step) % count);
            // A lock is held for microseconds, an extent stays where it is.
            let wait = pass || (stays && ag == target_group);
            let mode =
                if ag == target_group && target.0 > 0 { Mode::Near(target) } else { Mode::BySize };
            let served = trans.with_group_if(
                ag,
                wait,
                |trans, group| mode::accepts(trans, group, request),
                |trans, group| mode::serve(trans, group, request, mode),
            )?;
            // All that a group has may lie behind its limit, or be spared.
            if let Some(Some(found)) = served
                && (found.is_some() || !trans.volume().holds_back())
            {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// Longest extent that an ordinary request can get anywhere, looking from `start` on for the first
/// group that has `enough` blocks in one piece. Groups that were not read yet and are locked by
/// another thread are passed by.
///
/// # Errors
/// The headers of a group are damaged, or the device failed.
pub(super) fn longest_anywhere(
    trans: &Transaction<'_>,
    start: AgNumber,
    enough: u32,
) -> Result<u32, Error> {
    let (volume, count) = (trans.volume(), trans.volume().allocating_groups());
    let mut longest = 0;
    for step in 0..count {
        let ag = AgNumber((start.0 + step) % count);
        if volume.group_summary(ag).longest().is_none() {
            // Reading the headers publishes the summary.
            volume.lock_group(ag, false)?;
        }
        longest = longest.max(volume.group_summary(ag).longest().unwrap_or(0));
        if longest >= enough {
            break;
        }
    }
    Ok(longest)
}

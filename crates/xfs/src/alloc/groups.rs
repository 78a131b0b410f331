//! The walk over the groups: the target's first, then the others in order.
//!
//! Algorithms reference, section 3.2: near mode in the target's group, by size in the others; a
//! first pass that passes by groups whose lock another thread holds, then one that waits, but
//! never for a group below one that the transaction holds already.

use super::request::{Allocation, Request};
use super::{Mode, allocate_in_group};
use crate::error::Error;
use crate::trans::Transaction;
use crate::units::AgNumber;

/// Allocates near the request's target, or anywhere; `None` if no group can serve the request.
///
/// # Errors
/// Damaged trees or headers, or the device failed.
pub fn allocate(
    trans: &mut Transaction<'_>,
    request: &Request,
) -> Result<Option<Allocation>, Error> {
    let geometry = trans.geometry();
    let (target_group, target) = geometry.split_block(request.target);
    let count = geometry.ag_count;
    let start = if target_group.0 < count { target_group.0 } else { 0 };
    for wait in [false, true] {
        for step in 0..count {
            let ag = AgNumber((start + step) % count);
            let mode =
                if ag == target_group && target.0 > 0 { Mode::Near(target) } else { Mode::BySize };
            let served = trans.with_group(ag, wait, |trans, group| {
                allocate_in_group(trans, group, request, mode)
            })?;
            if let Some(Some(allocation)) = served {
                return Ok(Some(allocation));
            }
        }
    }
    Ok(None)
}

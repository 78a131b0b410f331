//! Extent allocation.
//!
//! [`allocate`] walks the groups from the target's (section 3.2 of the algorithms reference);
//! [`allocate_in_group`] works inside one whose lock is held. Each mode only searches; trees,
//! headers and reverse mappings are changed once, after success, by `take`.

mod by_size;
mod exact;
mod free;
mod freelist;
mod groups;
mod near;
mod request;
mod take;

pub use free::free_in_group;
pub use freelist::fill as fill_free_list;
pub use groups::allocate;
pub use request::{Allocation, Pool, Request};

use crate::ag::GroupState;
use crate::error::Error;
use crate::format::AllocRecord;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// How to look for an extent inside one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At this block or not at all.
    Exact(AgBlock),
    /// As close to this block as possible.
    Near(AgBlock),
    /// Wherever it fits best.
    BySize,
}

/// A free extent that can serve a request, and the part of it to take.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    record: AllocRecord,
    start: AgBlock,
    len: u32,
}

impl Candidate {
    fn distance(&self, hint: AgBlock) -> u32 {
        self.start.0.abs_diff(hint.0)
    }
}

/// The part of a free extent that starts at a multiple of the wanted alignment, inside the wanted
/// range.
fn aligned_part(request: &Request, record: AllocRecord) -> Option<(AgBlock, u32)> {
    let end = record.start.0 + record.len;
    let low = request.range.map_or(record.start.0, |(low, _)| record.start.0.max(low.0));
    let start = low.checked_next_multiple_of(request.alignment)?;
    (start < end).then(|| (AgBlock(start), end - start))
}

/// Allocates inside a group whose lock is held; `None` if the group cannot serve the request.
///
/// # Errors
/// Damaged trees, or the device failed.
pub fn allocate_in_group(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    mode: Mode,
) -> Result<Option<Allocation>, Error> {
    let Some(max_len) = freelist::admit(trans, group, request)? else {
        return Ok(None);
    };
    let candidate = match mode {
        Mode::Exact(target) => exact::find(trans, group, request, target, max_len)?,
        Mode::Near(hint) => near::find(trans, group, request, hint, max_len)?,
        Mode::BySize => by_size::find(trans, group, request, max_len)?,
    };
    let Some(candidate) = candidate else {
        return Ok(None);
    };
    take::take(trans, group, &candidate)?;
    let allocation = Allocation { ag: group.number, start: candidate.start, len: candidate.len };
    if let Some(owner) = request.owner {
        crate::ag::rmap::add_owner(trans, group, allocation.start, allocation.len, owner)?;
    }
    Ok(Some(allocation))
}

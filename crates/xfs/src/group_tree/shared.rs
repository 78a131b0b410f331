//! Blocks with more than one owner, as the tree of reference counts has them.

use super::AgTree;
use crate::btree::{Cursor, Refcountbt};
use crate::error::Error;
use crate::format::{AllocRecord, RefcountDomain, RefcountKey, RefcountRecord};
use crate::group::GroupState;
use crate::trans::Transaction;
use crate::units::AgBlock;
use std::ops::ControlFlow;

/// Whether a block has more than one owner.
///
/// # Errors
/// The tree is damaged.
pub(crate) fn is_shared(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    block: AgBlock,
) -> Result<bool, Error> {
    let mut shared = false;
    visit_counts(
        trans,
        group,
        RefcountDomain::Shared,
        AllocRecord { start: block, len: 1 },
        |_| {
            shared = true;
            ControlFlow::Break(())
        },
    )?;
    Ok(shared)
}

/// Visits the records of a domain with a block in the range.
pub(crate) fn visit_counts(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    domain: RefcountDomain,
    range: AllocRecord,
    mut visit: impl FnMut(RefcountRecord) -> ControlFlow<()>,
) -> Result<(), Error> {
    let last = range.start.0.saturating_add(range.len.saturating_sub(1));
    let low = RefcountKey { domain, start: range.start };
    let high = RefcountKey { domain, start: AgBlock(last) };
    let mut tree = AgTree::<Refcountbt>::new(trans, group);
    Cursor::new().for_each_in_range(&mut tree, &low, &high, |record| Ok(visit(record)))
}

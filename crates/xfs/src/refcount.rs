//! Reference counts: how many files share blocks of a group.
//!
//! The tree has records only of blocks with two owners or more, and of blocks set aside for
//! copy-on-write, which are a domain of their own. Blocks in use without a record have one owner.
//! Operations: docs/algorithms/reference-counts.md#counts. The work of a change grows with the
//! number of records in its range; [`prefix`] cuts a range to what one transaction should do.

use crate::alloc::SpaceTree;
use crate::btree::{Cursor, Lookup, Refcountbt};
use crate::error::Error;
use crate::format::{AllocRecord, RefcountDomain, RefcountRecord};
use crate::group::GroupState;
use crate::group_tree::visit_counts;
use crate::space::Pool;
use crate::trans::Transaction;
use crate::units::AgBlock;
use smallvec::SmallVec;
use std::ops::ControlFlow;

/// A count that is never changed again.
const PINNED: u32 = u32::MAX;

/// Blocks that lost their last owner.
pub(crate) type Freed = SmallVec<[AllocRecord; 2]>;

/// The remaining owners of a range of blocks.
#[derive(Default)]
struct Left {
    /// Blocks that have none.
    freed: Freed,
    /// Blocks that had more and have one.
    unshared: SmallVec<[AllocRecord; 2]>,
}

type Records = SmallVec<[RefcountRecord; 4]>;

/// Gives `len` blocks from `start` one more owner each.
///
/// # Errors
/// The tree is damaged; no space for it, see [`check_room`].
pub(crate) fn increase(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
) -> Result<(), Error> {
    let more = |count: u32| Some(count.saturating_add(1));
    rewrite(trans, group, RefcountDomain::Shared, AllocRecord { start, len }, more).map(drop)
}

/// Takes one owner from each of `len` blocks from `start`; blocks without a remaining owner are
/// returned, for the caller to free. Blocks with one remaining owner are not overwritten until this
/// is durable.
///
/// # Errors
/// The tree is damaged; no space for it, see [`check_room`].
pub(crate) fn decrease(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
) -> Result<Freed, Error> {
    let less = |count: u32| Some(if count == PINNED { PINNED } else { count - 1 });
    let Left { freed, unshared } =
        rewrite(trans, group, RefcountDomain::Shared, AllocRecord { start, len }, less)?;
    unshared.into_iter().for_each(|range| trans.volume().protect(&group.busy, range));
    Ok(freed)
}

/// Records that `len` blocks from `start` are set aside for copy-on-write.
///
/// # Errors
/// Some of them are already; the tree is damaged; no space for it.
pub(crate) fn add_staging(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
) -> Result<(), Error> {
    let set = |count: u32| (count == 0).then_some(1);
    rewrite(trans, group, RefcountDomain::Cow, AllocRecord { start, len }, set).map(drop)
}

/// Records that `len` blocks from `start` are no longer set aside for copy-on-write.
///
/// # Errors
/// Some of them are not; the tree is damaged.
pub(crate) fn remove_staging(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
) -> Result<(), Error> {
    let clear = |count: u32| count.checked_sub(1);
    rewrite(trans, group, RefcountDomain::Cow, AllocRecord { start, len }, clear).map(drop)
}

/// Fails if the group may lack the blocks that a change of counts needs, before anything is
/// changed. Space is kept for the tree, so that happens only where it was taken all the same.
///
/// # Errors
/// [`Error::NoSpace`].
pub(crate) fn check_room(trans: &Transaction<'_>, group: &GroupState) -> Result<(), Error> {
    // A change adds two records at most: two splits of every level, and the refill of the list. In
    // a small group the whole tree is smaller than that: no more is kept, nor needed.
    let kept = group.reserved.outstanding(&group.agf, &group.agi, Pool::Ordinary);
    let needed = (4 * (group.agf.refcountbt.levels + 1)).min(kept);
    if group.agf.free_blocks >= needed {
        return Ok(());
    }
    Err(Error::NoSpace { needed: needed.into(), block_size: trans.geometry().block_size() })
}

/// As [`check_room`], for any number of changes.
///
/// # Errors
/// As for [`check_room`].
pub(crate) fn check_room_for_all(trans: &Transaction<'_>, group: &GroupState) -> Result<(), Error> {
    let kept = group.reserved.outstanding(&group.agf, &group.agi, Pool::Ordinary);
    if group.agf.free_blocks >= kept {
        return Ok(());
    }
    Err(Error::NoSpace { needed: kept.into(), block_size: trans.geometry().block_size() })
}

/// Length of the part at the front of `len` blocks from `start` that has at most `records`
/// runs with counts of their own.
///
/// # Errors
/// The tree is damaged.
pub(crate) fn prefix(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    start: AgBlock,
    len: u32,
    records: usize,
) -> Result<u32, Error> {
    let mut part = len;
    let mut seen = 0;
    visit_counts(trans, group, RefcountDomain::Shared, AllocRecord { start, len }, |record| {
        if seen == records {
            part = record.start.0.saturating_sub(start.0).max(1);
            return ControlFlow::Break(());
        }
        seen += 1;
        ControlFlow::Continue(())
    })?;
    Ok(part)
}

/// Changes the counts of all blocks of a range by `change`, which says `None` for a count that
/// cannot be; returns the blocks whose count became 0 or 1.
fn rewrite(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    domain: RefcountDomain,
    range: AllocRecord,
    change: impl Fn(u32) -> Option<u32>,
) -> Result<Left, Error> {
    let inside = range.end().filter(|end| end.0 <= group.agf.length);
    if inside.is_none() || range.start <= trans.geometry().ag_header_last() {
        return Err(group.corrupt("refcountbt", range.start, "a range outside the group"));
    }
    // One block more on either side: the records that the range may merge with.
    let around = AllocRecord { start: AgBlock(range.start.0 - 1), len: range.len + 2 };
    let mut old = Records::new();
    visit_counts(trans, group, domain, around, |record| {
        old.push(record);
        ControlFlow::Continue(())
    })?;
    let Some((new, left)) = changed(domain, &old, range, change) else {
        return Err(group.corrupt("refcountbt", range.start, "a count that cannot be"));
    };
    store(trans, group, &old, &new)?;
    Ok(left)
}

/// The records around a range, `old`, after the counts in the range have changed.
fn changed(
    domain: RefcountDomain,
    old: &[RefcountRecord],
    range: AllocRecord,
    change: impl Fn(u32) -> Option<u32>,
) -> Option<(Records, Left)> {
    // Count of blocks without a record.
    let plain = if domain == RefcountDomain::Shared { 1 } else { 0 };
    let (from, to) = (range.start.0, range.start.0 + range.len);
    let (mut new, mut left) = (Records::new(), Left::default());
    let mut put = |start: u32, end: u32, refcount: u32| {
        let len = end - start;
        if start == end {
        } else if refcount > plain {
            let record = RefcountRecord { domain, start: AgBlock(start), len, refcount };
            match new.last_mut() {
                Some(last) if last.refcount == refcount && last.start.0 + last.len == start => {
                    last.len += len;
                }
                _ => new.push(record),
            }
        } else if domain == RefcountDomain::Shared {
            let list = if refcount == 0 { &mut left.freed } else { &mut left.unshared };
            match list.last_mut() {
                Some(last) if last.start.0 + last.len == start => last.len += len,
                _ => list.push(AllocRecord { start: AgBlock(start), len }),
            }
        }
    };
    let mut at = from;
    for record in old {
        let (start, end) = (record.start.0, record.start.0 + record.len);
        put(start, end.min(from).max(start), record.refcount);
        let (first, after) = (start.clamp(from, to), end.clamp(from, to));
        if first < after {
            if at < first {
                put(at, first, change(plain)?);
            }
            put(first, after, change(record.refcount)?);
            at = after;
        } else if start >= to && at < to {
            put(at, to, change(plain)?);
            at = to;
        }
        put(start.max(to).min(end), end, record.refcount);
    }
    if at < to {
        put(at, to, change(plain)?);
    }
    Some((new, left))
}

/// Makes the tree say `new` where it says `old`.
fn store(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    old: &[RefcountRecord],
    new: &[RefcountRecord],
) -> Result<(), Error> {
    let block_size = trans.geometry().block_size();
    let mut tree = SpaceTree::<Refcountbt>::new(trans, group);
    let mut cursor = Cursor::<Refcountbt>::new();
    let has = |list: &[RefcountRecord], key| list.iter().any(|other| other.key() == key);
    for gone in old.iter().filter(|record| !has(new, record.key())) {
        cursor.lookup(&mut tree, &gone.key(), Lookup::Equal)?;
        cursor.delete(&mut tree)?;
    }
    for record in new.iter().filter(|record| has(old, record.key()) && !old.contains(record)) {
        cursor.lookup(&mut tree, &record.key(), Lookup::Equal)?;
        cursor.update(&mut tree, record)?;
    }
    for added in new.iter().filter(|record| !has(old, record.key())) {
        cursor.lookup(&mut tree, &added.key(), Lookup::Equal)?;
        cursor.insert(&mut tree, added)?.or_no_space(block_size)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCKS: usize = 64;

    /// The records that counts per block make.
    fn records(counts: &[u32]) -> Records {
        let mut list = Records::new();
        for (start, &refcount) in counts.iter().enumerate().filter(|(_, count)| **count > 1) {
            let start = start as u32;
            match list.last_mut() {
                Some(last) if last.start.0 + last.len == start && last.refcount == refcount => {
                    last.len += 1;
                }
                _ => list.push(RefcountRecord {
                    domain: RefcountDomain::Shared,
                    start: AgBlock(start),
                    len: 1,
                    refcount,
                }),
            }
        }
        list
    }

    proptest! {
        /// Changed records are those of the changed counts, merged as far as they can be.
        #[test]
        fn records_follow_the_counts(
            mut counts in prop::collection::vec(1_u32..4, BLOCKS),
            start in 1..BLOCKS - 2,
            len in 1..BLOCKS,
            up: bool,
        ) {
            let end = (start + len).min(BLOCKS - 1);
            let range = AllocRecord { start: AgBlock(start as u32), len: (end - start) as u32 };
            let around = |record: &RefcountRecord| {
                record.start.0 <= end as u32 && record.start.0 + record.len >= start as u32
            };
            let (near, far): (Vec<_>, Vec<_>) = records(&counts).into_iter().partition(around);
            let change = |count: u32| Some(if up { count + 1 } else { count - 1 });
            let (new, left) = changed(RefcountDomain::Shared, &near, range, change).unwrap();
            let before = counts.clone();
            for count in &mut counts[start..end] {
                *count = change(*count).unwrap();
            }
            let mut all: Vec<_> = far.into_iter().chain(new).collect();
            all.sort_unstable_by_key(RefcountRecord::key);
            prop_assert_eq!(all, records(&counts).to_vec());
            let blocks = |list: &[AllocRecord]| -> Vec<usize> {
                let ranges = list.iter().map(|range| range.start.0..range.start.0 + range.len);
                ranges.flatten().map(|block| block as usize).collect()
            };
            let became = |count: u32| -> Vec<usize> {
                let has = |block: &usize| counts[*block] == count && before[*block] > count;
                (0..BLOCKS).filter(has).collect()
            };
            prop_assert_eq!(blocks(&left.freed), became(0));
            prop_assert_eq!(blocks(&left.unshared), became(1));
        }
    }
}

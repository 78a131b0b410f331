//! The two trees of free extents against each other and the header of the group.

use super::Location;
use super::checker::Checker;
use super::tree::TreeContent;
use crate::btree::{Bnobt, Cntbt};
use crate::format::{Agf, AllocRecord};
use crate::units::AgNumber;

/// Checks the free extents of a group and returns them in the order of blocks.
pub(super) fn check(
    checker: &Checker,
    ag: AgNumber,
    agf: &Agf,
    by_block: TreeContent<Bnobt>,
    by_size: TreeContent<Cntbt>,
) -> Vec<AllocRecord> {
    let location = Location::Group(ag);
    let mut sorted = by_size.records;
    let longest = sorted.last().map_or(0, |record| record.len);
    sorted.sort_unstable_by_key(|record| record.start);
    if by_block.complete && by_size.complete && sorted != by_block.records {
        let difference =
            by_block.records.iter().zip(&sorted).find(|(left, right)| left != right).map_or_else(
                String::new,
                |(left, right)| {
                    let (a, b) = (left.start, right.start);
                    format!(": {} blocks from {a}, {} from {b}", left.len, right.len)
                },
            );
        checker.error(
            "cntbt",
            location,
            format!("holds other free extents than bnobt{difference}"),
        );
    }
    let free = if by_block.complete { by_block.records } else { sorted };
    extents(checker, ag, &free);
    let sum: u64 = free.iter().map(|record| u64::from(record.len)).sum();
    if by_block.complete || by_size.complete {
        checker.expect("AGF", location, "freeblks", u64::from(agf.free_blocks), sum);
    }
    if by_size.complete {
        checker.expect("AGF", location, "longest", agf.longest, longest);
    }
    free
}

/// Range, overlap and merging of free extents in the order of blocks.
fn extents(checker: &Checker, ag: AgNumber, free: &[AllocRecord]) {
    let (geometry, mut last_end) = (checker.geometry(), 0_u64);
    for record in free {
        let (start, len) = (record.start, record.len);
        let end = u64::from(start.0) + u64::from(len);
        let location = Location::Block(ag, start);
        if start <= geometry.ag_header_last() || end > u64::from(geometry.ag_length(ag)) {
            checker.error(
                "bnobt",
                location,
                format!("free extent of {len} blocks is out of range"),
            );
        } else if u64::from(start.0) < last_end {
            checker.error("bnobt", location, "free extent overlaps the one before");
        } else if u64::from(start.0) == last_end {
            checker.error("bnobt", location, "free extent is not merged with the one before");
        }
        last_end = last_end.max(end);
    }
}

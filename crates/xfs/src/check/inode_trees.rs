//! The trees of inode chunks against each other and the header of the group.

use super::Location;
use super::checker::Checker;
use super::group::Group;
use super::tree::TreeContent;
use crate::btree::{Finobt, Inobt};
use crate::format::{Agi, InodeChunkRecord, RmapOwner};
use crate::geometry::{Geometry, INODES_PER_CHUNK};
use crate::units::{AgBlock, AgInode, AgNumber};

/// Checks the chunks of a group and returns the ones that can be looked at: ascending, disjoint, in
/// range.
pub(super) fn check(
    checker: &Checker,
    ag: AgNumber,
    agi: &Agi,
    all: &TreeContent<Inobt>,
    with_free: Option<&TreeContent<Finobt>>,
) -> Vec<InodeChunkRecord> {
    let location = Location::Group(ag);
    let mut chunks: Vec<InodeChunkRecord> = Vec::with_capacity(all.records.len());
    let (mut count, mut free) = (0_u64, 0_u64);
    for record in &all.records {
        count += u64::from(record.count);
        free += u64::from(record.freecount);
        let after = chunks.last().map_or(0, |last| u64::from(last.start.0) + 64);
        match misplaced(checker.geometry(), ag, record) {
            Some(what) => {
                checker.error("inobt", location, format!("chunk {}: {what}", record.start));
            }
            None if u64::from(record.start.0) < after => {
                let what = format!("chunk {} overlaps the one before", record.start);
                checker.error("inobt", location, what);
            }
            None => chunks.push(*record),
        }
    }
    if all.complete {
        checker.expect("AGI", location, "count", u64::from(agi.count), count);
        checker.expect("AGI", location, "freecount", u64::from(agi.free_count), free);
        if let Some(tree) = with_free.filter(|tree| tree.complete) {
            compare(checker, ag, &all.records, &tree.records);
        }
    }
    chunks
}

/// Why a chunk cannot be where it is.
fn misplaced(geometry: &Geometry, ag: AgNumber, record: &InodeChunkRecord) -> Option<String> {
    let (start, index) = geometry.inode_block(record.start);
    if geometry.inodes_per_block() <= INODES_PER_CHUNK && index != 0
        || !record.start.0.is_multiple_of(INODES_PER_CHUNK.min(geometry.inodes_per_block()))
    {
        return Some("does not start with a block".into());
    }
    let sparse = geometry.features.sparse_inodes();
    let align = if sparse { geometry.inode_alignment.max(1) } else { geometry.cluster_alignment() };
    if !start.0.is_multiple_of(align) {
        return Some(format!("starts at block {start}, not a multiple of {align}"));
    }
    let existing = record.existing();
    let first = AgInode(record.start.0 + existing.trailing_zeros());
    let last = AgInode(record.start.0 + 63 - existing.leading_zeros());
    let valid = |inode| geometry.valid_inode(geometry.inode_number(ag, inode));
    (!valid(first) || !valid(last)).then(|| "is out of range".into())
}

/// The tree of chunks with free inodes is a selection of the other.
fn compare(
    checker: &Checker,
    ag: AgNumber,
    all: &[InodeChunkRecord],
    with_free: &[InodeChunkRecord],
) {
    let mut found = with_free.iter().copied().peekable();
    let error = |what: String| checker.error("finobt", Location::Group(ag), what);
    for record in all.iter().filter(|record| record.freecount > 0) {
        while let Some(extra) = found.next_if(|other| other.start < record.start) {
            error(format!("chunk {} has no free inodes or does not exist", extra.start));
        }
        match found.next_if(|other| other.start == record.start) {
            Some(other) if other != *record => {
                error(format!("chunk {} differs from its record in inobt", other.start));
            }
            Some(_) => {}
            None => error(format!("chunk {} with free inodes is missing", record.start)),
        }
    }
    for extra in found {
        error(format!("chunk {} has no free inodes or does not exist", extra.start));
    }
}

/// Adds the blocks of the chunks to the map of the group.
pub(super) fn claim(geometry: &Geometry, group: &mut Group) {
    let shift = geometry.inodes_per_block_log();
    for record in std::mem::take(&mut group.chunks) {
        for (first, len) in runs(record.existing()) {
            let start = record.start.0 + first;
            let block = start >> shift;
            let end = (start + len).div_ceil(1 << shift);
            // Blocks of more inodes than a chunk hold two of them: the first one counts.
            if start & ((1 << shift) - 1) == 0 {
                group.claim(AgBlock(block), end - block, RmapOwner::INODES);
            }
        }
        group.chunks.push(record);
    }
}

/// Runs of set bits: first bit and length, ascending.
pub(super) fn runs(mask: u64) -> impl Iterator<Item = (u32, u32)> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let first = left.trailing_zeros();
        let len = (left >> first).trailing_ones();
        left &= if first + len == 64 { 0 } else { u64::MAX << (first + len) };
        Some((first, len))
    })
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn runs_of_a_mask() {
        assert_eq!(runs(u64::MAX).collect::<Vec<_>>(), [(0, 64)]);
        assert_eq!(runs(0xff00_0000_0000_00f3).collect::<Vec<_>>(), [(0, 2), (4, 4), (56, 8)]);
        assert_eq!(runs(0).count(), 0);
    }
}

//! What the trees of the groups say: which inodes are in use, and whose a block is. A tree that is sound
//! is walked; of one that is not its leaves count, as the scan found them.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashSet;
use undercroft_block::{Sector, read_buffer};
use undercroft_xfs_format::units::{AgNumber, FsBlock, InodeNumber};
use undercroft_xfs_format::{
    BufferKind, InodeChunkRecord, RmapFlags, RmapOwner, RmapRecord, TreeKind,
};

use super::index::Index;
use crate::disk::Disk;
use crate::scan::BlockTrace;
use crate::trees;

/// Owners before a block that are looked through: as many clones of one file are found.
const MOST_SHARED: usize = 4096;

/// A range of blocks and its owner.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) blocks: Range<u64>,
    pub(super) owner: RmapOwner,
    /// The block of the file that the first is.
    pub(super) offset: u64,
    pub(super) flags: RmapFlags,
}

/// What trees say of the groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Chunks of inodes by their first inode's number, for groups whose tree or parts of it are there.
    chunks: BTreeMap<u64, InodeChunkRecord>,
    /// Groups whose tree of inodes is sound: what it does not have is not there.
    with_inodes: FxHashSet<u32>,
    /// Owners by their first block.
    owners: Vec<Owned>,
    /// For each of them how far those up to it reach.
    reach: Vec<u64>,
    /// Groups whose tree of owners is sound.
    with_owners: FxHashSet<u32>,
}

impl Groups {
    pub(super) fn read(disk: &Disk, index: &Index) -> Self {
        let mut groups = Self::default();
        for (ag, blocks) in &index.groups {
            groups.inodes_of(disk, blocks, AgNumber(*ag));
            if disk.geometry.features.rmapbt() {
                groups.owners_of(disk, blocks, AgNumber(*ag));
            }
        }
        if !disk.geometry.features.crc {
            // Leaves do not say whose they are, nor of which time: a tree counts as a whole.
            let group = u64::from(disk.geometry.ag_blocks) << (disk.geometry.block_log - 9);
            let there = disk.present.capacity().0.div_ceil(group.max(1));
            let count = u64::from(disk.geometry.ag_count).min(there);
            (0..count as u32).for_each(|ag| groups.inodes_of(disk, &[], AgNumber(ag)));
        }
        groups.owners.sort_unstable_by_key(|owned| owned.blocks.start);
        groups.reach = groups
            .owners
            .iter()
            .scan(0, |reach, owned| {
                *reach = owned.blocks.end.max(*reach);
                Some(*reach)
            })
            .collect();
        groups
    }

    fn inodes_of(&mut self, disk: &Disk, blocks: &[BlockTrace], ag: AgNumber) {
        let geometry = &disk.geometry;
        let number = |chunk: &InodeChunkRecord| geometry.inode_number(ag, chunk.start).0;
        if let Ok(chunks) = trees::inode_chunks(disk, ag) {
            self.with_inodes.insert(ag.0);
            self.chunks.extend(chunks.into_iter().map(|chunk| (number(&chunk), chunk)));
            return;
        }
        let sparse = geometry.features.sparse_inodes();
        for leaf in latest_first(blocks, TreeKind::Inobt) {
            leaf_records(disk, leaf, TreeKind::Inobt, |record| {
                let chunk = InodeChunkRecord::decode(record, sparse);
                self.chunks.entry(number(&chunk)).or_insert(chunk);
            });
        }
    }

    fn owners_of(&mut self, disk: &Disk, blocks: &[BlockTrace], ag: AgNumber) {
        let mut own = Vec::new();
        if trees::owners(disk, ag, |record| own.push(record)).is_ok() {
            self.with_owners.insert(ag.0);
        } else {
            own.clear();
            let mut covered: Vec<Range<u32>> = Vec::new();
            for leaf in latest_first(blocks, TreeKind::Rmapbt) {
                let mut records = Vec::new();
                leaf_records(disk, leaf, TreeKind::Rmapbt, |record| {
                    records.push(RmapRecord::decode(record));
                });
                let (Some(first), Some(last)) = (records.first(), records.last()) else { continue };
                let range = first.start.0..last.start.0.saturating_add(1);
                // Leaves of one time divide the group among them; an older one is believed where no
                // later one is.
                let is_newest = |record: &&RmapRecord| {
                    let at = covered.partition_point(|range| range.end <= record.start.0);
                    covered.get(at).is_none_or(|range| range.start > record.start.0)
                };
                own.extend(records.iter().filter(is_newest));
                add_range(&mut covered, range);
            }
        }
        let geometry = &disk.geometry;
        for record in own.into_iter().filter(|record| record.validate().is_ok()) {
            let start = geometry.fs_block(ag, record.start).0;
            let (owner, offset, flags) = (record.owner, record.offset.0, record.flags);
            let blocks = start..start + u64::from(record.len);
            self.owners.push(Owned { blocks, owner, offset, flags });
        }
    }

    /// Whether an inode is in use; `None` where nothing says so.
    pub(super) fn in_use(&self, disk: &Disk, number: InodeNumber) -> Option<bool> {
        const CHUNK: u64 = InodeChunkRecord::INODES as u64;
        let (ag, _) = disk.geometry.split_inode(number);
        let before = self.chunks.range(..=number.0).next_back();
        if let Some((start, chunk)) = before.filter(|(start, _)| number.0 - **start < CHUNK) {
            let bit = 1 << (number.0 - start);
            return Some(chunk.existing() & bit != 0 && chunk.free & bit == 0);
        }
        if self.with_inodes.contains(&ag.0) {
            return Some(false);
        }
        // A chunk that was given back belongs to nobody, or to others.
        let block = disk.geometry.inode_fs_block(number);
        let is_chunk = self.at(block.0..block.0 + 1).any(|owned| owned.owner == RmapOwner::INODES);
        (self.with_owners.contains(&ag.0) && !is_chunk).then_some(false)
    }

    /// Whether a chunk of inodes can be there, in use or free.
    pub(super) fn may_have(&self, disk: &Disk, number: InodeNumber) -> bool {
        let (ag, _) = disk.geometry.split_inode(number);
        let before = self.chunks.range(..=number.0).next_back();
        let is_in = |(start, _): &(&u64, &InodeChunkRecord)| {
            number.0 - **start < u64::from(InodeChunkRecord::INODES)
        };
        before.is_some_and(|chunk| is_in(&chunk)) || !self.with_inodes.contains(&ag.0)
    }

    /// Whether the owners of a group are known, all of them.
    pub(super) fn know_owners(&self, disk: &Disk, block: FsBlock) -> bool {
        self.with_owners.contains(&disk.geometry.split_block(block).0.0)
    }

    /// Whether the owners of all blocks are known.
    pub(super) fn know_all_owners(&self, disk: &Disk) -> bool {
        self.with_owners.len() as u64 == u64::from(disk.geometry.ag_count)
    }

    /// Whether a block can be an inode's, by its owner.
    pub(super) fn may_own(&self, disk: &Disk, owner: u64, block: FsBlock) -> bool {
        let mut owners = self.at(block.0..block.0 + 1).peekable();
        if owners.peek().is_none() {
            return !self.know_owners(disk, block);
        }
        owners.any(|owned| owned.owner.0 == owner)
    }

    /// The owners of blocks of a range.
    pub(super) fn at(&self, range: Range<u64>) -> impl Iterator<Item = &Owned> {
        let first = self.owners.partition_point(|owned| owned.blocks.start < range.start);
        let behind = self.owners.partition_point(|owned| owned.blocks.start < range.end);
        let before = self.owners[..first].iter().zip(&self.reach[..first]).rev().take(MOST_SHARED);
        let near = before.take_while(move |(_, reach)| **reach > range.start);
        let over = near.map(|(owned, _)| owned).filter(move |owned| owned.blocks.end > range.start);
        over.chain(&self.owners[first..behind.max(first)])
    }

    /// All owners.
    pub(super) fn owners(&self) -> &[Owned] {
        &self.owners
    }
}

/// Adds a range to sorted ones that do not touch.
fn add_range(ranges: &mut Vec<Range<u32>>, range: Range<u32>) {
    let first = ranges.partition_point(|known| known.end < range.start);
    let behind = ranges.partition_point(|known| known.start <= range.end);
    let mut joined = range;
    for known in &ranges[first..behind.max(first)] {
        joined = joined.start.min(known.start)..joined.end.max(known.end);
    }
    ranges.splice(first..behind.max(first), [joined]);
}

/// The blocks of a tree among those of a group, the latest first.
fn latest_first(blocks: &[BlockTrace], tree: TreeKind) -> Vec<&BlockTrace> {
    let kind = BufferKind::Tree(tree);
    let mut found: Vec<_> = blocks.iter().filter(|trace| trace.kind == kind).collect();
    found.sort_by_key(|trace| std::cmp::Reverse(trace.lsn));
    found
}

/// Hands over the records of a block that is a sound leaf.
fn leaf_records(disk: &Disk, trace: &BlockTrace, tree: TreeKind, visit: impl FnMut(&[u8])) {
    let (geometry, sector) = (&disk.geometry, Sector(trace.sector));
    let block = read_buffer(disk.present.as_ref(), sector, geometry.block_size());
    if let Ok(block) = block
        && let Some(records) = trees::records_of_leaf(geometry, &block, tree, sector)
    {
        records.for_each(visit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined() {
        let mut ranges = Vec::new();
        for range in [10..20, 30..40, 5..8, 18..31, 50..60] {
            add_range(&mut ranges, range);
        }
        assert_eq!(ranges, [5..8, 10..40, 50..60]);
    }
}

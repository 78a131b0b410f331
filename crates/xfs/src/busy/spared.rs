//! Free blocks and free inodes that are not given out: what removed files left there is wanted
//! (docs/algorithms/busy-extents.md#spared-blocks).

use super::trim::{first_overlap, trim};
use crate::format::{AllocRecord, InodeChunkRecord};
use crate::units::AgInode;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};

/// What is spared in one group.
#[derive(Debug, Default)]
pub(crate) struct Spared {
    /// Lengths by first block, disjoint.
    extents: Mutex<BTreeMap<u32, u32>>,
    /// How many blocks these have.
    blocks: AtomicU32,
    inodes: Mutex<BTreeSet<u32>>,
}

impl Spared {
    /// Blocks that are spared.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks.load(Ordering::Acquire)
    }

    /// Adds blocks; some may be spared already.
    pub(super) fn add(&self, range: AllocRecord) {
        let mut extents = self.extents.lock();
        let removed = cut(&mut extents, range);
        extents.insert(range.start.0, range.len);
        self.blocks.fetch_add(range.len - removed, Ordering::AcqRel);
    }

    /// Takes blocks out; returns how many of them were spared.
    pub(super) fn remove(&self, range: AllocRecord) -> u32 {
        let removed = cut(&mut self.extents.lock(), range);
        self.blocks.fetch_sub(removed, Ordering::AcqRel);
        removed
    }

    /// The part of a free extent that is usable for a request of `min_len` to `max_len` blocks. Its length is
    /// 0 if none is.
    pub(crate) fn trim(&self, free: AllocRecord, min_len: u32, max_len: u32) -> AllocRecord {
        if self.blocks() == 0 {
            return free;
        }
        let extents = self.extents.lock();
        trim(free, min_len, max_len, |start, end| first_overlap(&extents, |len| *len, start, end))
    }

    /// Adds an inode.
    pub(crate) fn add_inode(&self, inode: AgInode) {
        self.inodes.lock().insert(inode.0);
    }

    /// Free inodes of a chunk that may be given out.
    pub(crate) fn allocatable(&self, chunk: &InodeChunkRecord) -> u64 {
        let inodes = self.inodes.lock();
        let end = chunk.start.0.saturating_add(InodeChunkRecord::INODES.into());
        let spared = inodes.range(chunk.start.0..end);
        let mask = spared.fold(0, |mask, inode| mask | 1 << (inode - chunk.start.0));
        chunk.allocatable() & !mask
    }
}

/// Cuts a range out of disjoint extents; returns how many blocks of it they had.
fn cut(extents: &mut BTreeMap<u32, u32>, range: AllocRecord) -> u32 {
    let (start, end) = (range.start.0, range.start.0.saturating_add(range.len));
    let mut removed = 0;
    while let Some((first, after)) = first_overlap(extents, |len| *len, start, end) {
        extents.remove(&first);
        if first < start {
            extents.insert(first, start - first);
        }
        if after > end {
            extents.insert(end, after - end);
        }
        removed += after.min(end) - first.max(start);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::AgBlock;

    fn extent(start: u32, len: u32) -> AllocRecord {
        AllocRecord { start: AgBlock(start), len }
    }

    #[test]
    fn blocks_are_counted_once_and_cut_out() {
        let spared = Spared::default();
        spared.add(extent(10, 10));
        spared.add(extent(15, 10));
        spared.add(extent(40, 5));
        assert_eq!(spared.blocks(), 20);
        assert_eq!(spared.trim(extent(0, 30), 1, 100), extent(0, 10));
        assert_eq!(spared.trim(extent(10, 15), 1, 1).len, 0);
        assert_eq!(spared.remove(extent(12, 4)), 4);
        assert_eq!(spared.blocks(), 16);
        assert_eq!(spared.trim(extent(10, 15), 1, 4), extent(12, 4));
        assert_eq!(spared.remove(extent(0, 100)), 16);
        assert_eq!(spared.trim(extent(0, 30), 1, 100), extent(0, 30));
    }

    #[test]
    fn inodes_are_left_out_of_their_chunk() {
        let spared = Spared::default();
        let chunk = InodeChunkRecord {
            start: AgInode(128),
            holemask: 0,
            count: 64,
            freecount: 3,
            free: 0b1011,
        };
        assert_eq!(spared.allocatable(&chunk), 0b1011);
        for inode in [127, 128, 131, 192] {
            spared.add_inode(AgInode(inode));
        }
        assert_eq!(spared.allocatable(&chunk), 0b0010);
    }
}

//! Extents that were freed by a checkpoint that is not durable yet.
//!
//! Until the freeing is on disk, a crash brings the old owner back: its blocks must not hold other
//! data by then. Metadata may reuse them, because it goes through the journal itself. Rules:
//! docs/algorithms/busy-extents.md#rules. The table has a lock of its own, so that the journal can
//! clear it while a group is locked.

mod remapped;
mod spared;
mod trim;

use crate::format::AllocRecord;
use crate::units::AgBlock;
use parking_lot::Mutex;
use remapped::RemappedExtents;
use spared::Spared;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use trim::{first_overlap, trim};

/// Busy extents of a group from which on a checkpoint is worth its while: every search for space
/// near them looks at them all.
const MANY: usize = 1024;

/// Busy extents of a group with which nothing more is begun before a checkpoint with them is
/// durable.
const TOO_MANY: usize = 8 * MANY;

/// How many busy extents a group has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Crowd {
    /// As many as there may be.
    #[default]
    Few,
    /// The journal should be written.
    Many,
    /// It must be written first.
    TooMany,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy {
    len: u32,
    /// The checkpoint that freed it.
    checkpoint: u64,
}

/// The busy extents of one group, disjoint.
#[derive(Debug, Default)]
pub struct BusyExtents {
    /// By first block.
    extents: Mutex<BTreeMap<u32, Busy>>,
    /// Number of extents, and one for a limit or spared blocks, readable without the lock: mostly there
    /// are none.
    count: AtomicUsize,
    /// The greatest block number less the first block that is never given out; 0 without any.
    limit: AtomicU32,
    /// Free blocks from there on.
    free_behind_limit: AtomicU32,
    /// Grows with every removal.
    generation: AtomicU64,
    /// Blocks that are not free, and wait all the same.
    remapped: RemappedExtents,
    spared: Spared,
    /// Extents that became free for all, if they are wanted.
    freed: Mutex<Option<Vec<AllocRecord>>>,
}

/// The first busy extent that overlaps `[start, end)`.
fn overlap(extents: &BTreeMap<u32, Busy>, start: u32, end: u32) -> Option<(u32, u32)> {
    first_overlap(extents, |busy| busy.len, start, end)
}

impl BusyExtents {
    /// Whether nothing is busy.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Whether there are many.
    #[inline]
    pub(crate) fn crowd(&self) -> Crowd {
        match self.count.load(Ordering::Acquire) {
            0..=MANY => Crowd::Few,
            count if count <= TOO_MANY => Crowd::Many,
            _ => Crowd::TooMany,
        }
    }

    /// A number that grows with every removal: a search that found only busy extents is worth
    /// repeating once it changed.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Enters an extent that `checkpoint` frees.
    pub fn insert(&self, freed: AllocRecord, checkpoint: u64) {
        let mut extents = self.extents.lock();
        extents.insert(freed.start.0, Busy { len: freed.len, checkpoint });
        self.counted(&extents);
    }

    /// Enters blocks in use that `checkpoint` leaves to one of their owners, or moves in its file,
    /// or cuts the end of the file in.
    pub(crate) fn insert_remapped(&self, range: AllocRecord, checkpoint: u64) {
        self.remapped.insert(range, checkpoint);
    }

    /// Whether a crash would bring back another owner, or another place in its file, of some of
    /// `len` blocks from `start`, which are in use: they must not be overwritten yet.
    pub(crate) fn has_remapped(&self, start: AgBlock, len: u32) -> bool {
        self.remapped.overlaps(start, len)
    }

    /// The part of a free extent that is usable for a request of `min_len` to `max_len` blocks. Its
    /// length is 0 if none is.
    ///
    /// Of two parts around a busy one the left is preferred, so that allocation moves forward.
    #[must_use]
    pub fn trim(&self, free: AllocRecord, min_len: u32, max_len: u32) -> AllocRecord {
        let extents = self.extents.lock();
        trim(free, min_len, max_len, |start, end| overlap(&extents, start, end))
    }

    /// Ends the busy state of blocks that metadata takes at once.
    pub fn reuse(&self, start: AgBlock, len: u32) {
        if self.is_empty() {
            return;
        }
        let mut extents = self.extents.lock();
        let (start, end) = (start.0, start.0 + len);
        while let Some((first, after)) = overlap(&extents, start, end)
            && let Some(busy) = extents.remove(&first)
        {
            if first < start {
                extents.insert(first, Busy { len: start - first, ..busy });
            }
            if after > end {
                extents.insert(end, Busy { len: after - end, ..busy });
            }
        }
        self.removed(&extents);
    }

    /// The checkpoints up to `checkpoint` are durable: extents that they freed are free for all.
    pub(crate) fn set_durable(&self, checkpoint: u64) {
        self.remapped.set_durable(checkpoint);
        if self.is_empty() {
            return;
        }
        let mut extents = self.extents.lock();
        let mut freed = self.freed.lock();
        extents.retain(|start, busy| {
            let stays = busy.checkpoint > checkpoint;
            if let (false, Some(freed)) = (stays, &mut *freed) {
                freed.push(AllocRecord { start: AgBlock(*start), len: busy.len });
            }
            stays
        });
        drop(freed);
        self.removed(&extents);
    }

    /// The extents that became free for all since this was asked the last time; those from the first time
    /// on.
    pub(crate) fn take_freed(&self) -> Vec<AllocRecord> {
        self.freed.lock().replace(Vec::new()).unwrap_or_default()
    }

    /// The parts of a free extent that are not busy.
    pub(crate) fn idle_parts(&self, free: AllocRecord) -> Vec<AllocRecord> {
        let extents = self.extents.lock();
        let (mut parts, mut at, end) = (Vec::new(), free.start.0, free.start.0 + free.len);
        while at < end {
            let (first, after) = overlap(&extents, at, end).unwrap_or((end, end));
            if first > at {
                parts.push(AllocRecord { start: AgBlock(at), len: first - at });
            }
            at = after;
        }
        parts
    }

    fn counted(&self, extents: &BTreeMap<u32, Busy>) {
        let is_limited = self.limit.load(Ordering::Acquire) > 0;
        let others = usize::from(is_limited || self.spared.blocks() > 0);
        self.count.store(extents.len() + others, Ordering::Release);
    }

    /// Gives no block out again from `start` on, of which `free` are free, whatever they hold. A group
    /// without a limit pays nothing for this, as its searches look here only where something is busy.
    pub(crate) fn limit(&self, start: AgBlock, free: u32) {
        let extents = self.extents.lock();
        self.limit.store(u32::MAX - start.0, Ordering::Release);
        self.free_behind_limit.store(free, Ordering::Release);
        self.counted(&extents);
    }

    /// The part of a free extent in front of the limit. Its length may be 0.
    pub(crate) fn in_front_of_limit(&self, free: AllocRecord) -> AllocRecord {
        let end = u32::MAX - self.limit.load(Ordering::Acquire);
        AllocRecord { len: free.len.min(end.saturating_sub(free.start.0)), ..free }
    }

    /// Free blocks that the group counts and does not give out: those behind a bar go with it, so they
    /// cannot be what the trees may grow into, and spared ones must not be.
    #[inline]
    pub(crate) fn held_back(&self) -> u32 {
        self.free_behind_limit.load(Ordering::Acquire).saturating_add(self.spared.blocks())
    }

    /// Spares free blocks.
    pub(crate) fn spare(&self, free: AllocRecord) {
        let extents = self.extents.lock();
        self.spared.add(free);
        self.counted(&extents);
    }

    /// Ends the sparing of those of these blocks that are spared; returns how many there were.
    pub(crate) fn end_sparing(&self, range: AllocRecord) -> u32 {
        let extents = self.extents.lock();
        let count = self.spared.remove(range);
        self.counted(&extents);
        count
    }

    /// What is spared.
    pub(crate) const fn spared(&self) -> &Spared {
        &self.spared
    }

    /// Counts blocks that became free, where they lie behind the limit.
    #[inline]
    pub(crate) fn became_free(&self, freed: AllocRecord) {
        if self.limit.load(Ordering::Acquire) > 0 {
            let behind = freed.len - self.in_front_of_limit(freed).len;
            self.free_behind_limit.fetch_add(behind, Ordering::AcqRel);
        }
    }

    fn removed(&self, extents: &BTreeMap<u32, Busy>) {
        self.counted(extents);
        self.generation.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extent(start: u32, len: u32) -> AllocRecord {
        AllocRecord { start: AgBlock(start), len }
    }

    fn table(busy: &[(u32, u32)]) -> BusyExtents {
        let table = BusyExtents::default();
        for &(start, len) in busy {
            table.insert(extent(start, len), 1);
        }
        table
    }

    #[test]
    fn a_free_extent_is_cut_where_it_is_busy() {
        let free = extent(100, 100);
        assert_eq!(table(&[]).trim(free, 1, 10), free);
        assert_eq!(table(&[(0, 100), (200, 5)]).trim(free, 1, 10), free);
        assert_eq!(table(&[(90, 200)]).trim(free, 1, 10).len, 0);
        assert_eq!(table(&[(90, 20)]).trim(free, 1, 10), extent(110, 90));
        assert_eq!(table(&[(190, 20)]).trim(free, 1, 10), extent(100, 90));
        // In the middle: the left part if it is all that is wanted.
        assert_eq!(table(&[(120, 10)]).trim(free, 1, 20), extent(100, 20));
        // Else the right one if it has plenty.
        assert_eq!(table(&[(110, 10)]).trim(free, 1, 20), extent(120, 80));
        // Else the left one if it is acceptable.
        assert_eq!(table(&[(110, 10)]).trim(free, 10, 21), extent(100, 10));
        assert_eq!(table(&[(110, 10)]).trim(free, 11, 21).len, 0);
        // Several, at both ends.
        assert_eq!(table(&[(100, 10), (115, 5), (190, 10)]).trim(free, 1, 5), extent(110, 5));
    }

    #[test]
    fn metadata_takes_busy_extents() {
        let table = table(&[(10, 10), (30, 10)]);
        table.reuse(AgBlock(12), 2);
        assert_eq!(table.trim(extent(10, 10), 1, 2), extent(12, 2));
        table.reuse(AgBlock(14), 20);
        assert_eq!(table.trim(extent(10, 30), 1, 20), extent(12, 22));
        table.reuse(AgBlock(0), 100);
        assert!(table.is_empty());
    }

    #[test]
    fn a_checkpoint_releases_its_own() {
        let table = BusyExtents::default();
        table.insert(extent(1, 1), 1);
        table.insert(extent(5, 1), 2);
        table.insert(extent(9, 1), 3);
        let before = table.generation();
        table.set_durable(2);
        assert!(table.generation() > before);
        assert_eq!(table.trim(extent(5, 1), 1, 1), extent(5, 1));
        assert_eq!(table.trim(extent(9, 1), 1, 1).len, 0);
        table.set_durable(3);
        assert!(table.is_empty());
    }

    proptest! {
        /// The usable part holds no busy block, and lies in the free extent.
        #[test]
        fn nothing_busy_is_usable(
            busy in prop::collection::vec((0_u32..200, 1_u32..12), 0..12),
            free in (0_u32..150, 1_u32..100),
            min_len in 1_u32..20,
            more in 0_u32..40,
        ) {
            let table = BusyExtents::default();
            let mut map = [false; 256];
            for (start, len) in busy {
                let blocks = start as usize..(start + len) as usize;
                if map[blocks.clone()].iter().all(|busy| !busy) {
                    map[blocks].fill(true);
                    table.insert(extent(start, len), 1);
                }
            }
            let free = extent(free.0, free.1);
            let part = table.trim(free, min_len, min_len + more);
            if part.len > 0 {
                let blocks = part.start.0 as usize..(part.start.0 + part.len) as usize;
                prop_assert!(map[blocks].iter().all(|busy| !busy));
                prop_assert!(part.start >= free.start);
                prop_assert!(part.start.0 + part.len <= free.start.0 + free.len);
                prop_assert!(part == free || part.len >= min_len);
            }
        }
    }
}

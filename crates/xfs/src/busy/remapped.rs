//! Blocks in use that were something else before a checkpoint that is not durable yet: they had
//! another owner as well, or another place in their file, or more of them was in it.
//!
//! To their owner they look like any others. But until that checkpoint is on disk, a crash brings
//! back their old mapping, and their data must be the old data. So they are not overwritten until
//! then.

use crate::format::AllocRecord;
use crate::units::AgBlock;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    /// The block behind it.
    end: u32,
    /// The checkpoint that must be durable first.
    checkpoint: u64,
}

/// Such blocks of one group.
#[derive(Debug, Default)]
pub(super) struct RemappedExtents {
    /// By first block, disjoint.
    extents: Mutex<BTreeMap<u32, Extent>>,
    /// Whether there are any, readable without the lock: mostly there are none.
    has_any: AtomicBool,
}

impl RemappedExtents {
    /// Enters blocks that `checkpoint` changes, no older one than those before.
    pub(super) fn insert(&self, range: AllocRecord, checkpoint: u64) {
        let mut extents = self.extents.lock();
        let (mut start, mut end) = (range.start.0, range.start.0 + range.len);
        // Extents that it meets wait a little longer than they have to.
        while let Some((first, after)) =
            last_before(&extents, end).filter(|(_, after)| *after > start)
        {
            extents.remove(&first);
            (start, end) = (start.min(first), end.max(after));
        }
        extents.insert(start, Extent { end, checkpoint });
        self.has_any.store(true, Ordering::Release);
    }

    /// Whether some of `len` blocks from `start` are among them.
    pub(super) fn overlaps(&self, start: AgBlock, len: u32) -> bool {
        self.has_any.load(Ordering::Acquire)
            && last_before(&self.extents.lock(), start.0 + len)
                .is_some_and(|(_, after)| after > start.0)
    }

    /// The checkpoints up to `checkpoint` are durable.
    pub(super) fn set_durable(&self, checkpoint: u64) {
        if !self.has_any.load(Ordering::Acquire) {
            return;
        }
        let mut extents = self.extents.lock();
        extents.retain(|_, extent| extent.checkpoint > checkpoint);
        self.has_any.store(!extents.is_empty(), Ordering::Release);
    }
}

/// The last extent that begins before `end`: its first block, and the one behind it.
fn last_before(extents: &BTreeMap<u32, Extent>, end: u32) -> Option<(u32, u32)> {
    extents.range(..end).next_back().map(|(first, extent)| (*first, extent.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A block waits for the last checkpoint that changed it, or for a later one that met an
        /// extent it is in.
        #[test]
        fn blocks_wait_for_their_last_checkpoint(
            ranges in prop::collection::vec((0_u32..60, 1_u32..8), 1..20),
            durable in 0_u64..20,
        ) {
            let table = RemappedExtents::default();
            let mut newest = [0; 70];
            for (checkpoint, &(start, len)) in (1..).zip(&ranges) {
                table.insert(AllocRecord { start: AgBlock(start), len }, checkpoint);
                newest[start as usize..(start + len) as usize].fill(checkpoint);
            }
            table.set_durable(durable);
            for (block, newest) in newest.iter().enumerate() {
                let waits = table.overlaps(AgBlock(block as u32), 1);
                prop_assert!(waits || *newest <= durable);
                prop_assert!(!waits || *newest > 0);
            }
            table.set_durable(ranges.len() as u64);
            prop_assert!(!table.overlaps(AgBlock(0), 70));
        }
    }
}

//! The leafN as a leaf of the hash tree.

use crate::bytes::EditBytes;
use crate::da::{LeafKind, Side};
use crate::format::BufferKind;
use crate::format::da_block::{DaLayout, PAIR_SIZE};
use crate::format::dir_leaf;

/// Hash blocks of node form.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashLeaf(pub(super) DaLayout);

impl HashLeaf {
    /// Whether so few entries are left that a merge is worth a look (37 % of the block).
    pub(super) fn is_below_join_threshold(self, leaf: &[u8]) -> bool {
        self.0.pair_offset(dir_leaf::live(leaf, self.0)) < self.0.block_size * 37 / 100
    }
}

impl LeafKind for HashLeaf {
    const KIND: BufferKind = BufferKind::DirLeafN;

    /// The hash of the new name.
    type Entry = u32;

    fn init(&self, _: &mut EditBytes<'_>) {
        // Zero counts are an empty leaf.
    }

    fn last_hash(&self, leaf: &[u8]) -> Option<u32> {
        let last = self.0.count(leaf).checked_sub(1)?;
        Some(self.0.hash(leaf, last))
    }

    fn split(&self, left: &mut EditBytes<'_>, right: &mut EditBytes<'_>, hash: &u32) -> Side {
        let layout = self.0;
        dir_leaf::compact(left, layout);
        let count = layout.count(left.bytes());
        let keep = (count / 2).max(1);
        let side =
            if *hash <= layout.hash(left.bytes(), keep - 1) { Side::Left } else { Side::Right };
        let moved = layout.pair_offset(keep)..layout.pair_offset(count);
        right.put_bytes(layout.pair_offset(0), &left.bytes()[moved.clone()]);
        left.zero(moved);
        layout.set_count(left, keep);
        layout.set_count(right, count - keep);
        side
    }

    fn is_empty(&self, _: &[u8]) -> bool {
        // A leaf of stale pairs alone goes by a merge, as the kernel does it.
        false
    }

    fn is_sparse(&self, leaf: &[u8]) -> bool {
        self.0.pair_offset(dir_leaf::live(leaf, self.0)) <= self.0.block_size / 2
    }

    fn can_merge(&self, left: &[u8], right: &[u8]) -> bool {
        let live = dir_leaf::live(left, self.0) + dir_leaf::live(right, self.0);
        live * PAIR_SIZE <= self.0.block_size * 3 / 4
    }

    fn merge(&self, kept: &mut EditBytes<'_>, dropped: &[u8], side: Side) {
        let layout = self.0;
        dir_leaf::compact(kept, layout);
        let count = layout.count(kept.bytes());
        let added = dir_leaf::live(dropped, layout);
        let start = match side {
            Side::Left => {
                kept.copy_within(
                    layout.pair_offset(0)..layout.pair_offset(count),
                    layout.pair_offset(added),
                );
                0
            }
            Side::Right => count,
        };
        let to = kept.region(layout.pair_offset(start)..layout.pair_offset(start + added));
        let pairs = dropped[layout.pair_offset(0)..layout.pair_offset(layout.count(dropped))]
            .chunks_exact(PAIR_SIZE)
            .filter(|pair| pair[4..] != [0; 4]);
        for (to, pair) in to.chunks_exact_mut(PAIR_SIZE).zip(pairs) {
            to.copy_from_slice(pair);
        }
        layout.set_count(kept, count + added);
    }
}

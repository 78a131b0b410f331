//! The way from the root of a hash tree to one block, and from there to its neighbours.

use super::leaf_kind::Side;
use crate::cache::BufferRef;
use crate::units::FileBlock;
use smallvec::SmallVec;

/// One block on a path.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) block: FileBlock,
    pub(super) buffer: BufferRef,
    /// In a node: the child the path goes on with.
    pub(super) index: usize,
}

/// The blocks from the root of a hash tree down to a leaf. It stays valid while only the tree
/// operations it is handed to change the tree.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// From the root; never empty.
    pub(super) steps: SmallVec<[Step; 4]>,
    pub(super) guard: LoopGuard,
}

impl Path {
    /// The leaf.
    #[must_use]
    pub(crate) fn leaf(&self) -> &BufferRef {
        &self.last().buffer
    }

    /// File block of the leaf.
    #[must_use]
    pub(crate) fn leaf_block(&self) -> FileBlock {
        self.last().block
    }

    /// Whether the tree is a single leaf.
    #[must_use]
    pub(crate) fn is_single_leaf(&self) -> bool {
        self.steps.len() == 1
    }

    pub(super) fn last(&self) -> &Step {
        self.steps.last().expect("a path has at least the root")
    }
}

/// Which child to follow on the way down.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    /// The first that may hold this hash.
    Hash(u32),
    /// The one at this end.
    End(Side),
}

/// Notices that a chain of blocks comes back to one of them (Brent's algorithm): memory for one
/// block, at most three rounds of the loop.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoopGuard {
    mark: FileBlock,
    since: u64,
    limit: u64,
}

impl LoopGuard {
    /// Records a visit of `block`; whether it was certainly visited before.
    pub(crate) fn seen(&mut self, block: FileBlock) -> bool {
        if self.limit > 0 && block == self.mark {
            return true;
        }
        self.since += 1;
        if self.since > self.limit {
            self.mark = block;
            self.limit = self.limit * 2 + 1;
            self.since = 0;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_noticed_and_a_chain_is_not() {
        let mut guard = LoopGuard::default();
        assert!((0..10_000).all(|block| !guard.seen(FileBlock(block))));
        for (lead, round) in [(0_u64, 1_u64), (0, 2), (5, 3), (100, 77)] {
            let mut guard = LoopGuard::default();
            let steps = (0..)
                .map(|i| if i < lead { i } else { lead + (i - lead) % round })
                .position(|block| guard.seen(FileBlock(block)))
                .unwrap();
            assert!(steps as u64 <= 4 * (lead + round) + 4, "{lead} {round}: {steps}");
        }
    }
}

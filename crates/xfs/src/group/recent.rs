//! The blocks of a group's trees that were used last.
//!
//! One allocation looks half a dozen times at the same places of the same trees: where a free
//! extent lies, how long it is, the owner of its neighbours. A block that was found, read and
//! verified for the look before is taken from here instead of from the table of all buffers.

use crate::cache::{BufferRef, LastUsed};
use crate::format::{BufferKind, TreeKind};
use crate::units::AgBlock;

/// Trees that are rooted in the headers of a group: all kinds before that of mapping trees, which are
/// rooted in inodes.
const TREES: usize = TreeKind::Bmbt as usize;

/// Levels of a tree, counted from the leaves, of which a block is remembered.
const LEVELS: usize = 4;

/// One block for each level of each tree.
#[derive(Debug, Default)]
pub(super) struct RecentBlocks {
    slots: [[LastUsed<AgBlock>; LEVELS]; TREES],
}

impl RecentBlocks {
    /// The block at `pointer`, if it was the last one [remembered](Self::remember) of this level and
    /// is still the one in the cache.
    #[inline]
    pub(super) fn find(&self, tree: TreeKind, level: usize, pointer: AgBlock) -> Option<BufferRef> {
        let recent = self.slots.get(tree as usize)?.get(level)?;
        recent.find(pointer, BufferKind::Tree(tree))
    }

    /// Remembers a block of the tree that was verified at this place.
    pub(super) fn remember(
        &mut self,
        tree: TreeKind,
        level: usize,
        pointer: AgBlock,
        buffer: &BufferRef,
    ) {
        let levels = self.slots.get_mut(tree as usize);
        if let Some(recent) = levels.and_then(|levels| levels.get_mut(level)) {
            recent.remember(pointer, buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{BufferAddress, MetaBuffer};
    use std::sync::Arc;
    use undercroft_block::Sector;

    fn buffer(kind: TreeKind) -> BufferRef {
        let address = BufferAddress::contiguous(Sector(8), 8);
        MetaBuffer::new(address, BufferKind::Tree(kind), vec![0; 4096])
    }

    #[test]
    fn a_block_is_found_where_it_was_last() {
        let (mut recent, block) = (RecentBlocks::default(), buffer(TreeKind::Rmapbt));
        recent.remember(TreeKind::Rmapbt, 1, AgBlock(7), &block);
        let found = recent.find(TreeKind::Rmapbt, 1, AgBlock(7));
        assert!(found.is_some_and(|found| Arc::ptr_eq(&found, &block)));
        for (tree, level, pointer) in [
            (TreeKind::Rmapbt, 1, AgBlock(8)),
            (TreeKind::Rmapbt, 0, AgBlock(7)),
            (TreeKind::Rmapbt, LEVELS, AgBlock(7)),
            (TreeKind::Bnobt, 1, AgBlock(7)),
            (TreeKind::Bmbt, 1, AgBlock(7)),
        ] {
            assert!(recent.find(tree, level, pointer).is_none(), "{tree:?} {level} {pointer:?}");
        }
        let next = buffer(TreeKind::Rmapbt);
        recent.remember(TreeKind::Rmapbt, 1, AgBlock(9), &next);
        assert!(recent.find(TreeKind::Rmapbt, 1, AgBlock(7)).is_none(), "one of a level");
    }

    #[test]
    fn a_block_that_went_or_is_something_else_now_is_not_found() {
        let mut recent = RecentBlocks::default();
        let find = |recent: &RecentBlocks| recent.find(TreeKind::Bnobt, 0, AgBlock(7)).is_some();
        let gone = buffer(TreeKind::Bnobt);
        recent.remember(TreeKind::Bnobt, 0, AgBlock(7), &gone);
        assert!(find(&recent));
        drop(gone);
        assert!(!find(&recent), "nobody holds it");

        let other = buffer(TreeKind::Cntbt);
        recent.remember(TreeKind::Bnobt, 0, AgBlock(7), &other);
        assert!(!find(&recent), "it is of another tree");

        let retired = buffer(TreeKind::Bnobt);
        recent.remember(TreeKind::Bnobt, 0, AgBlock(7), &retired);
        retired.content().retired = true;
        assert!(!find(&recent), "the cache has another one, or none");
    }
}

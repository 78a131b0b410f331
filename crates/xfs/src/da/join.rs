//! Merges of a hash tree: sparse leaves and nodes with a neighbour, a root with one child.
//!
//! docs/algorithms/hash-trees.md#join. A neighbour may hang under another parent; of
//! the two blocks the one with the lower number stays.

use super::fork::DaForkMut;
use super::leaf_kind::{LeafKind, Side};
use super::path::{Path, Step};
use super::tree::HashTree;
use crate::bytes::EditBytes;
use crate::cache::BufferRef;
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::da_block;

impl<L: LeafKind> HashTree<L> {
    /// After entries were taken out of the leaf of `path` (and the hashes above fixed): merges it
    /// with a neighbour if both fit one block, goes on upwards, and lowers the tree when its
    /// root has one child left.
    ///
    /// # Errors
    /// A block that cannot be read, does not fit the tree or cannot be freed.
    pub(crate) fn join<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        mut path: Path,
    ) -> Result<(), Error> {
        while path.steps.len() > 1 {
            if !self.join_last(fork, &mut path)? {
                return Ok(());
            }
            path.steps.pop();
        }
        self.collapse_root(fork)
    }

    /// Tries to get rid of the last block of `path` or of a neighbour. If it does, `path` leads to
    /// the block that is gone, and its parent has lost a child.
    fn join_last<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
    ) -> Result<bool, Error> {
        let bytes = path.leaf().read();
        let (left, right) = (da_block::backward(&bytes), da_block::forward(&bytes));
        let node = bytes.kind() == BufferKind::DaNode;
        let count = self.layout.count(&bytes);
        let (empty, sparse) = if node {
            (count == 0, count <= self.layout.max_pairs() / 2)
        } else {
            (self.leaf.is_empty(&bytes), self.leaf.is_sparse(&bytes))
        };
        drop(bytes);
        if !sparse {
            return Ok(false);
        }
        if empty && (left.is_some() || right.is_some()) {
            self.remove_last(fork, path)?;
            return Ok(true);
        }
        if empty && node {
            return Err(fork.corrupt(path.leaf_block(), "a node lost its only child".into()));
        }
        let mut candidates = [(left, Side::Left), (right, Side::Right)];
        candidates.sort_by_key(|(block, _)| *block);
        for side in candidates.into_iter().filter_map(|(block, side)| block.map(|_| side)) {
            let mut other = path.clone();
            if !self.shift(fork, &mut other, side)? {
                return Err(
                    fork.corrupt(path.leaf_block(), "its sibling is not in the tree".into())
                );
            }
            let fits = match side {
                Side::Left => self.can_merge(other.leaf(), path.leaf()),
                Side::Right => self.can_merge(path.leaf(), other.leaf()),
            };
            if fits {
                self.merge_last(fork, path, other, side)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn can_merge(&self, left: &BufferRef, right: &BufferRef) -> bool {
        let (left, right) = (left.read(), right.read());
        if left.kind() == BufferKind::DaNode {
            let max = self.layout.max_pairs();
            self.layout.count(&left) + self.layout.count(&right) <= max - max / 4
        } else {
            self.leaf.can_merge(&left, &right)
        }
    }

    /// Merges the last block of `path` with that of `other`, its neighbour on `side`.
    fn merge_last<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
        other: Path,
        side: Side,
    ) -> Result<(), Error> {
        let (mut kept, dropped, dropped_side) = if other.leaf_block() < path.leaf_block() {
            let dropped_side = if side == Side::Left { Side::Right } else { Side::Left };
            (other, path.clone(), dropped_side)
        } else {
            (path.clone(), other, side)
        };
        {
            let mut guard = fork.edit(kept.leaf());
            let mut edit = guard.edit();
            let source = dropped.leaf().read();
            if source.kind() == BufferKind::DaNode {
                self.merge_nodes(&mut edit, &source, dropped_side);
            } else {
                self.leaf.merge(&mut edit, &source, dropped_side);
            }
        }
        self.remove_last(fork, &dropped)?;
        let depth = kept.steps.len() - 2;
        let gone = &dropped.steps[depth];
        if gone.block == kept.steps[depth].block && gone.index < kept.steps[depth].index {
            kept.steps[depth].index -= 1;
        }
        self.fix_hashes(fork, &kept);
        *path = dropped;
        Ok(())
    }

    fn merge_nodes(&self, kept: &mut EditBytes<'_>, dropped: &[u8], side: Side) {
        let layout = self.layout;
        let (count, added) = (layout.count(kept.bytes()), layout.count(dropped));
        let pairs = &dropped[layout.pair_offset(0)..layout.pair_offset(added)];
        match side {
            Side::Left => {
                kept.copy_within(
                    layout.pair_offset(0)..layout.pair_offset(count),
                    layout.pair_offset(added),
                );
                kept.put_bytes(layout.pair_offset(0), pairs);
            }
            Side::Right => kept.put_bytes(layout.pair_offset(count), pairs),
        }
        layout.set_count(kept, count + added);
    }

    /// Takes the last block of `path` out of its level and out of its parent, and frees it.
    fn remove_last<F: DaForkMut + ?Sized>(&self, fork: &mut F, path: &Path) -> Result<(), Error> {
        let layout = self.layout;
        let step = path.last();
        let (left, right) = {
            let bytes = step.buffer.read();
            (da_block::backward(&bytes), da_block::forward(&bytes))
        };
        if let Some(left) = left {
            let (buffer, _) = self.read(fork, left, None)?;
            da_block::set_forward(&mut fork.edit(&buffer).edit(), right);
        }
        if let Some(right) = right {
            let (buffer, _) = self.read(fork, right, None)?;
            da_block::set_backward(&mut fork.edit(&buffer).edit(), left);
        }
        let depth = path.steps.len() - 2;
        let parent: &Step = &path.steps[depth];
        if depth == 0 && self.layout.count(&parent.buffer.read()) == 1 {
            return Err(fork.corrupt(step.block, "the root's only child has siblings".into()));
        }
        let rest = {
            let mut guard = fork.edit(&parent.buffer);
            let mut edit = guard.edit();
            let count = layout.count(edit.bytes());
            edit.copy_within(
                layout.pair_offset(parent.index + 1)..layout.pair_offset(count),
                layout.pair_offset(parent.index),
            );
            layout.set_count(&mut edit, count - 1);
            count - 1
        };
        if rest > 0 {
            let mut above = path.clone();
            above.steps.pop();
            self.fix_hashes(fork, &above);
        }
        fork.unmap(step.block, fork.block_blocks())
    }

    /// Moves the content of a root's only child into the root, as often as possible.
    fn collapse_root<F: DaForkMut + ?Sized>(&self, fork: &mut F) -> Result<(), Error> {
        loop {
            let (root, level) = self.read(fork, self.root, None)?;
            let child = {
                let bytes = root.read();
                if level == 0 || self.layout.count(&bytes) > 1 {
                    return Ok(());
                }
                self.layout.child(&bytes, 0)
            };
            let (buffer, _) = self.read(fork, child, Some(level - 1))?;
            let alone = {
                let bytes = buffer.read();
                da_block::forward(&bytes).is_none() && da_block::backward(&bytes).is_none()
            };
            if !alone {
                return Err(fork.corrupt(child, "the root's only child has siblings".into()));
            }
            self.copy_block(fork, &buffer, &root);
            fork.unmap(child, fork.block_blocks())?;
        }
    }
}

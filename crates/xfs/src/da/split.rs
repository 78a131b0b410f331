//! Splits of a hash tree: a full leaf, full nodes above it, a new root.
//!
//! docs/algorithms/hash-trees.md#split. Room is made from the top down: first every node that
//! has to take one more child, then the leaf. A root is pushed down to a new block before it is
//! split, so that all splits are alike.

use super::fork::DaForkMut;
use super::leaf_kind::{LeafKind, Side};
use super::path::{Path, Step};
use super::tree::HashTree;
use crate::cache::BufferRef;
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::da_block::{self, MAX_NODE_LEVEL};
use crate::units::FileBlock;

impl<L: LeafKind> HashTree<L> {
    /// Splits the leaf of `path` to make room for `entry`, and moves the path to the half that
    /// `entry` belongs to. The caller adds the entry and then calls
    /// [`fix_hashes`](Self::fix_hashes).
    ///
    /// # Errors
    /// No space; a damaged neighbour; a tree that would become too high.
    pub(crate) fn split<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
        entry: &L::Entry,
    ) -> Result<(), Error> {
        if path.is_single_leaf() {
            self.push_down_root(fork, path)?;
        }
        let parent = self.ensure_room(fork, path, path.steps.len() - 2)?;
        let (block, buffer) = self.new_block(fork, L::KIND)?;
        let side = {
            let (mut left, mut right) = (fork.edit(path.leaf()), fork.edit(&buffer));
            self.leaf.init(&mut right.edit());
            self.leaf.split(&mut left.edit(), &mut right.edit(), entry)
        };
        self.link_after(fork, path.last(), block, &buffer)?;
        self.insert_child(fork, path, parent, block, &buffer)?;
        if side == Side::Right {
            path.steps[parent].index += 1;
            path.steps[parent + 1] = Step { block, buffer, index: 0 };
        }
        Ok(())
    }

    /// Moves the content of the root to a new block, under a root one level higher.
    fn push_down_root<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
    ) -> Result<(), Error> {
        let root = path.steps[0].buffer.clone();
        let (kind, level) = {
            let bytes = root.read();
            let kind = bytes.kind();
            (kind, if kind == BufferKind::DaNode { self.layout.level(&bytes) } else { 0 })
        };
        if level == MAX_NODE_LEVEL {
            return Err(Error::Full(format!(
                "the hash tree of inode {} cannot grow beyond {MAX_NODE_LEVEL} levels",
                fork.inode()
            )));
        }
        let (block, buffer) = self.new_block(fork, kind)?;
        self.copy_block(fork, &root, &buffer);
        let last = self.last_hash(&buffer).unwrap_or(0);
        let identity = super::identity(fork, &root);
        let mut guard = fork.edit(&root);
        guard.set_kind(BufferKind::DaNode);
        let mut edit = guard.edit();
        edit.zero(0..self.layout.block_size);
        da_block::write_header(&mut edit, BufferKind::DaNode, self.layout.crc, &identity);
        self.layout.set_level(&mut edit, level + 1);
        self.layout.set_count(&mut edit, 1);
        self.layout.set_child(&mut edit, 0, last, block);
        drop(guard);
        path.steps[0].block = block;
        path.steps[0].buffer = buffer;
        path.steps.insert(0, Step { block: self.root, buffer: root, index: 0 });
        Ok(())
    }

    /// Sees to it that the node at `depth` of the path can take one more child, and returns its
    /// depth, which is one more if the tree grew.
    fn ensure_room<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
        depth: usize,
    ) -> Result<usize, Error> {
        let count = self.layout.count(&path.steps[depth].buffer.read());
        if count < self.layout.max_pairs() {
            return Ok(depth);
        }
        let parent = if depth == 0 {
            self.push_down_root(fork, path)?;
            0
        } else {
            self.ensure_room(fork, path, depth - 1)?
        };
        self.split_node(fork, path, parent)?;
        Ok(parent + 1)
    }

    /// Splits the full node below depth `parent`, whose node has room.
    fn split_node<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
        parent: usize,
    ) -> Result<(), Error> {
        let layout = self.layout;
        let (block, buffer) = self.new_block(fork, BufferKind::DaNode)?;
        let step = path.steps[parent + 1].clone();
        let keep = {
            let (mut left, mut right) = (fork.edit(&step.buffer), fork.edit(&buffer));
            let (mut left, mut right) = (left.edit(), right.edit());
            let count = layout.count(left.bytes());
            let keep = count.div_ceil(2);
            let moved = layout.pair_offset(keep)..layout.pair_offset(count);
            right.put_bytes(layout.pair_offset(0), &left.bytes()[moved.clone()]);
            left.zero(moved);
            layout.set_count(&mut left, keep);
            layout.set_count(&mut right, count - keep);
            layout.set_level(&mut right, layout.level(left.bytes()));
            keep
        };
        self.link_after(fork, &step, block, &buffer)?;
        self.insert_child(fork, path, parent, block, &buffer)?;
        if let Some(index) = step.index.checked_sub(keep) {
            path.steps[parent].index += 1;
            path.steps[parent + 1] = Step { block, buffer, index };
        }
        Ok(())
    }

    /// Links the new block behind `left` on its level.
    fn link_after<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        left: &Step,
        block: FileBlock,
        buffer: &BufferRef,
    ) -> Result<(), Error> {
        let next = da_block::forward(&left.buffer.read());
        if let Some(next) = next {
            let (next, _) = self.read(fork, next, None)?;
            da_block::set_backward(&mut fork.edit(&next).edit(), Some(block));
        }
        da_block::set_forward(&mut fork.edit(&left.buffer).edit(), Some(block));
        let mut guard = fork.edit(buffer);
        let mut edit = guard.edit();
        da_block::set_forward(&mut edit, next);
        da_block::set_backward(&mut edit, Some(left.block));
        Ok(())
    }

    /// Enters the new block behind the child that the path follows at `depth`, and corrects that
    /// child's key.
    fn insert_child<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        path: &Path,
        depth: usize,
        block: FileBlock,
        buffer: &BufferRef,
    ) -> Result<(), Error> {
        let layout = self.layout;
        let (node, left) = (&path.steps[depth], &path.steps[depth + 1]);
        let (Some(left_hash), Some(hash)) = (self.last_hash(&left.buffer), self.last_hash(buffer))
        else {
            return Err(fork.corrupt(left.block, "nothing to split in a full block".into()));
        };
        let mut guard = fork.edit(&node.buffer);
        let mut edit = guard.edit();
        let count = layout.count(edit.bytes());
        let at = node.index + 1;
        edit.copy_within(
            layout.pair_offset(at)..layout.pair_offset(count),
            layout.pair_offset(at + 1),
        );
        layout.set_count(&mut edit, count + 1);
        layout.set_child(&mut edit, node.index, left_hash, left.block);
        layout.set_child(&mut edit, at, hash, block);
        Ok(())
    }
}

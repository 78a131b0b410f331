//! A hash tree: finding leaves, walking along them, keeping the keys above them right.
//!
//! Interior entries are (highest hash of the child, child block); equal hashes may span leaves;
//! the root stays at a fixed file block (docs/format/hash-trees.md#root-place). A tree may be a
//! single leaf at the root's place. Splits are in `split.rs`, merges in `join.rs`.
//!
//! An operation that fails may have changed some blocks already: its transaction must be
//! cancelled.

use super::fork::{DaFork, DaForkMut};
use super::leaf_kind::{LeafKind, Side};
use super::path::{Choice, LoopGuard, Path, Step};
use crate::cache::BufferRef;
use crate::error::Error;
use crate::format::BufferKind;
use crate::format::da_block::{self, BlockIdentity, DaLayout};
use crate::units::FileBlock;
use smallvec::SmallVec;

/// A hash tree whose leaves are `L`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashTree<L> {
    pub(super) root: FileBlock,
    pub(super) layout: DaLayout,
    pub(super) leaf: L,
}

impl<L: LeafKind> HashTree<L> {
    /// The tree with its root at file block `root`.
    pub(crate) const fn new(root: FileBlock, layout: DaLayout, leaf: L) -> Self {
        Self { root, layout, leaf }
    }

    /// The kind of the leaves.
    pub(crate) const fn leaf_kind(&self) -> &L {
        &self.leaf
    }

    /// Goes to the first leaf that may hold `hash`: the first whose last hash is not below it, or
    /// else the last leaf.
    ///
    /// # Errors
    /// A block that cannot be read or does not fit the tree.
    pub(crate) fn descend<F: DaFork + ?Sized>(
        &self,
        fork: &mut F,
        hash: u32,
    ) -> Result<Path, Error> {
        let mut path = Path { steps: SmallVec::new(), guard: LoopGuard::default() };
        self.extend(fork, &mut path, self.root, Choice::Hash(hash), None)?;
        path.guard.seen(path.leaf_block());
        Ok(path)
    }

    /// Moves `path` to the next leaf in hash order; `false` (and the path unchanged) at the last.
    ///
    /// # Errors
    /// A block that cannot be read or does not fit the tree; leaves chained in a loop.
    pub(crate) fn next_leaf<F: DaFork + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
    ) -> Result<bool, Error> {
        let moved = self.shift(fork, path, Side::Right)?;
        if moved && path.guard.seen(path.leaf_block()) {
            return Err(fork.corrupt(path.leaf_block(), "the leaves form a loop".into()));
        }
        Ok(moved)
    }

    /// Brings the keys above the leaf of `path` in line with the entries of the leaf.
    pub(crate) fn fix_hashes<F: DaForkMut + ?Sized>(&self, fork: &mut F, path: &Path) {
        for pair in path.steps.windows(2).rev() {
            let [parent, child] = pair else { continue };
            let Some(last) = self.last_hash(&child.buffer) else { continue };
            if self.layout.hash(&parent.buffer.read(), parent.index) != last {
                let mut guard = fork.edit(&parent.buffer);
                self.layout.set_child(&mut guard.edit(), parent.index, last, child.block);
            }
        }
    }

    /// Maps a new block of the tree and writes the common header of `kind`.
    ///
    /// # Errors
    /// No space, or the mapping cannot be read.
    pub(crate) fn new_block<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        kind: BufferKind,
    ) -> Result<(FileBlock, BufferRef), Error> {
        let (block, buffer) = fork.grow(self.root, kind)?;
        if u32::try_from(block.0).is_err() {
            return Err(Error::Full(format!(
                "the hash tree of inode {} has no block numbers left",
                fork.inode()
            )));
        }
        let identity = identity(fork, &buffer);
        let mut guard = fork.edit(&buffer);
        da_block::write_header(&mut guard.edit(), kind, self.layout.crc, &identity);
        drop(guard);
        Ok((block, buffer))
    }

    /// Makes `target` a copy of `source` that knows its own address.
    pub(super) fn copy_block<F: DaForkMut + ?Sized>(
        &self,
        fork: &mut F,
        source: &BufferRef,
        target: &BufferRef,
    ) {
        let identity = identity(fork, target);
        let mut guard = fork.edit(target);
        let source = source.read();
        guard.set_kind(source.kind());
        let mut edit = guard.edit();
        edit.put_bytes(0, &source);
        da_block::write_header(&mut edit, source.kind(), self.layout.crc, &identity);
    }

    /// Highest hash in a node or leaf.
    pub(super) fn last_hash(&self, buffer: &BufferRef) -> Option<u32> {
        let bytes = buffer.read();
        if bytes.kind() == BufferKind::DaNode {
            let last = self.layout.count(&bytes).checked_sub(1)?;
            Some(self.layout.hash(&bytes, last))
        } else {
            self.leaf.last_hash(&bytes)
        }
    }

    /// Reads a block of the tree and returns it with its level; `expected` is the level its parent
    /// demands.
    pub(super) fn read<F: DaFork + ?Sized>(
        &self,
        fork: &mut F,
        block: FileBlock,
        expected: Option<u16>,
    ) -> Result<(BufferRef, u16), Error> {
        let aligned = block.0 % u64::from(fork.block_blocks())
            == self.root.0 % u64::from(fork.block_blocks());
        if block < self.root || !aligned {
            return Err(fork.corrupt(block, "not a block of the hash tree's range".into()));
        }
        let Some(buffer) = fork.read(block, BufferKind::DaAny)? else {
            return Err(fork.corrupt(block, "a block of the hash tree is a hole".into()));
        };
        let bytes = buffer.read();
        let level = match bytes.kind() {
            BufferKind::DaNode => self.layout.level(&bytes),
            kind if kind == L::KIND => 0,
            kind => {
                return Err(fork.corrupt(block, format!("{kind:?} block in the hash tree")));
            }
        };
        drop(bytes);
        match expected {
            Some(expected) if expected != level => Err(fork.corrupt(
                block,
                format!("level {level} in the hash tree where {expected} is expected"),
            )),
            _ => Ok((buffer, level)),
        }
    }

    /// Goes down from `block` to a leaf, or to level `stop`, and adds the blocks to `path`.
    fn extend<F: DaFork + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
        mut block: FileBlock,
        choice: Choice,
        bounds: Option<(u16, u16)>,
    ) -> Result<(), Error> {
        let (mut expected, stop) = match bounds {
            Some((first, stop)) => (Some(first), stop),
            None => (None, 0),
        };
        loop {
            // The level falls by one each time, from at most MAX_NODE_LEVEL.
            let (buffer, level) = self.read(fork, block, expected)?;
            if level <= stop {
                path.steps.push(Step { block, buffer, index: 0 });
                return Ok(());
            }
            let bytes = buffer.read();
            let last = self.layout.count(&bytes) - 1;
            let index = match choice {
                Choice::End(Side::Left) => 0,
                Choice::End(Side::Right) => last,
                Choice::Hash(hash) => {
                    da_block::lower_bound(last, hash, |index| self.layout.hash(&bytes, index))
                }
            };
            let child = self.layout.child(&bytes, index);
            drop(bytes);
            path.steps.push(Step { block, buffer, index });
            expected = Some(level - 1);
            block = child;
        }
    }

    /// Moves the last block of `path` to its neighbour on `side` at the same level; `false` (and
    /// the path unchanged) if there is none.
    pub(super) fn shift<F: DaFork + ?Sized>(
        &self,
        fork: &mut F,
        path: &mut Path,
        side: Side,
    ) -> Result<bool, Error> {
        let depth = path.steps.len() - 1;
        let from = path.last().clone();
        let neighbour = |index: usize, count: usize| match side {
            Side::Left => index.checked_sub(1),
            Side::Right => Some(index + 1).filter(|index| *index < count),
        };
        let found = (0..depth).rev().find_map(|at| {
            let step = &path.steps[at];
            let count = self.layout.count(&step.buffer.read());
            neighbour(step.index, count).map(|index| (at, index))
        });
        let links = |step: &Step| {
            let bytes = step.buffer.read();
            (da_block::backward(&bytes), da_block::forward(&bytes))
        };
        let outward = |step: &Step| match side {
            Side::Left => links(step).0,
            Side::Right => links(step).1,
        };
        let Some((at, index)) = found else {
            return match outward(&from) {
                None => Ok(false),
                Some(link) => Err(fork
                    .corrupt(from.block, format!("sibling {link} of the outermost block is set"))),
            };
        };
        path.steps.truncate(at + 1);
        path.steps[at].index = index;
        let (child, level) = {
            let bytes = path.steps[at].buffer.read();
            (self.layout.child(&bytes, index), self.layout.level(&bytes))
        };
        // Levels fall by one per step; the walk ends at the level it started from.
        let target = level - (depth - at) as u16;
        let inward = match side {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        };
        self.extend(fork, path, child, Choice::End(inward), Some((level - 1, target)))?;
        let to = path.last();
        let back = match side {
            Side::Left => links(to).1,
            Side::Right => links(to).0,
        };
        if outward(&from) != Some(to.block) || back != Some(from.block) {
            return Err(fork.corrupt(
                from.block,
                format!("its sibling links do not match those of block {}", to.block),
            ));
        }
        Ok(true)
    }
}

/// The fields of the header of `buffer` about itself.
pub(crate) fn identity<F: DaFork + ?Sized>(fork: &F, buffer: &BufferRef) -> BlockIdentity {
    BlockIdentity { blkno: buffer.sector(), uuid: fork.geometry().meta_uuid, owner: fork.inode() }
}

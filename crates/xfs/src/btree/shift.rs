//! Moving entries between siblings (docs/algorithms/btrees.md#insertion).
//!
//! A full block that gives way to an insertion hands over half of what its sibling has room for,
//! not one entry as the reference does: inserts in ascending order would otherwise move an entry,
//! and its keys up the tree, every time. Trees whose searches depend on the leaves keep to the
//! reference ([`BtreeKind::SHIFTS_ONE`]).

use super::cursor::{Cursor, edit_block};
use super::frame::Frame;
use super::kind::{BlockPointer, BtreeKind};
use super::node::Node;
use super::store::WriteTree;
use super::verify::read_block;
use crate::cache::BufferRef;
use crate::format::{FieldDefect, Rule};

/// Which neighbour of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A block beside one of the path.
#[derive(Clone, Debug)]
pub(super) struct Sibling<P> {
    pub(super) side: Side,
    pub(super) pointer: P,
    pub(super) buffer: BufferRef,
    /// Entries in it.
    pub(super) count: usize,
}

impl<K: BtreeKind> Cursor<K> {
    /// The sibling of the block at `level`, if there is one.
    pub(super) fn sibling<S: WriteTree<Kind = K>>(
        &self,
        store: &mut S,
        level: usize,
        side: Side,
    ) -> Result<Option<Sibling<K::Pointer>>, S::Error> {
        let node = self.node(store, level);
        let pointer = if side == Side::Left { node.left() } else { node.right() };
        drop(node);
        let Some(pointer) = pointer else { return Ok(None) };
        let buffer = read_block(store, pointer, level)?;
        let frame = Frame::block(store.geometry(), level);
        // A sibling links back: a block is then never taken for two neighbours at once.
        let node = Node::<K>::block(&buffer, frame);
        let back = if side == Side::Left { node.right() } else { node.left() };
        let count = node.count();
        drop(node);
        if back != Some(self.levels[level].pointer) {
            let field = if side == Side::Left { "leftsib" } else { "rightsib" };
            let rule = Rule::Text("a block that links back");
            let found = pointer.number();
            return Err(self.fault(store, level, FieldDefect { field, found, rule }));
        }
        Ok(Some(Sibling { side, pointer, buffer, count }))
    }

    /// Moves the outermost `width` entries of the block at `level` over to its sibling, which has
    /// room. The index is not adjusted.
    pub(super) fn give<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        sibling: &Sibling<K::Pointer>,
        width: usize,
    ) -> Result<(), S::Error> {
        let Some(own) = self.levels[level].buffer.clone() else { return Ok(()) };
        let frame = Frame::block(store.geometry(), level);
        let count = Node::<K>::block(&own, frame).count();
        edit_block::<K, S>(store, &sibling.buffer, level, |node| {
            let source = Node::block(&own, frame);
            match sibling.side {
                Side::Right => node.prepend(&source, count + 1 - width, count),
                Side::Left => node.append(&source, 1, width),
            }
        });
        edit_block::<K, S>(store, &own, level, |node| match sibling.side {
            Side::Right => node.set_count(count - width),
            Side::Left => node.remove_range(1, width),
        });
        self.propagate_pair(store, level, sibling.side)
    }

    /// Moves the nearest entry of the sibling, which can spare it, to the block at `level`. The
    /// index is not adjusted.
    pub(super) fn take<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        sibling: &Sibling<K::Pointer>,
    ) -> Result<(), S::Error> {
        let Some(own) = self.levels[level].buffer.clone() else { return Ok(()) };
        let frame = Frame::block(store.geometry(), level);
        edit_block::<K, S>(store, &own, level, |node| {
            let source = Node::block(&sibling.buffer, frame);
            match sibling.side {
                Side::Right => node.append(&source, 1, 1),
                Side::Left => node.prepend(&source, sibling.count, sibling.count),
            }
        });
        edit_block::<K, S>(store, &sibling.buffer, level, |node| match sibling.side {
            Side::Right => node.remove(1),
            Side::Left => node.set_count(sibling.count - 1),
        });
        self.propagate_pair(store, level, sibling.side)
    }

    /// Updates the parents after an entry crossed the border between the block at `level` and its
    /// neighbour on `side`: the right one of the two has a new first entry, and both may have a
    /// new highest key.
    fn propagate_pair<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        side: Side,
    ) -> Result<(), S::Error> {
        if K::OVERLAPPING || side == Side::Left {
            self.propagate_keys(store, level, false)?;
        }
        if K::OVERLAPPING || side == Side::Right {
            let mut neighbour = self.clone();
            match side {
                Side::Right => {
                    neighbour.levels[level].index = self.count(store, level);
                    neighbour.step_right(store, level)?;
                }
                Side::Left => {
                    neighbour.levels[level].index = 1;
                    neighbour.step_left(store, level)?;
                }
            }
            neighbour.propagate_keys(store, level, false)?;
        }
        Ok(())
    }
}

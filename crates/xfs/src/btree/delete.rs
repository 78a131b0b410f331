//! Deleting a record (docs/algorithms/btrees.md#deletion).

use super::cursor::{Cursor, Level, edit_block};
use super::frame::Frame;
use super::kind::{BlockPointer, BtreeKind};
use super::node::Node;
use super::shift::{Sibling, Side};
use super::store::{Root, WriteTree};
use super::verify::read_block;
use crate::cache::BufferRef;

impl<K: BtreeKind> Cursor<K> {
    /// Deletes the record at the cursor, which is afterwards at the record that followed, or
    /// behind the last record of the leaf.
    ///
    /// # Errors
    /// The cursor is not at a record (the tree is unchanged), a block cannot be read or given
    /// back, or the tree is corrupt. The tree may be half changed: the transaction must be given
    /// up.
    pub fn delete<S: WriteTree<Kind = K>>(&mut self, store: &mut S) -> Result<(), S::Error> {
        let index = self.index();
        if index == 0 || index > self.leaf_len(store) {
            return Err(self.misplaced(store, 0));
        }
        let mut last = 0;
        while self.delete_at(store, last)? {
            last += 1;
        }
        // Parents point behind the entry that was kept of each joined pair. Top down, because a
        // step to the left may have to climb.
        for level in (1..=last).rev() {
            if !self.step_left(store, level)? {
                return Err(self.misplaced(store, level));
            }
        }
        if K::OVERLAPPING && last > 0 {
            self.propagate_keys(store, 0, true)?;
        }
        match store.root() {
            Root::Inline(_) => self.pull_up(store),
            Root::Block { .. } if last + 1 == self.levels.len() => self.shrink_root(store),
            Root::Block { .. } => Ok(()),
        }
    }

    /// Deletes the entry at the index of `level` and refills the block. Whether it was joined with
    /// a sibling; the cursor above is then at the entry of the block that disappeared.
    fn delete_at<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
    ) -> Result<bool, S::Error> {
        let index = self.levels[level].index;
        if index == 0 || index > self.count(store, level) {
            return Err(self.misplaced(store, level));
        }
        self.edit_node(store, level, |node| node.remove(index))?;
        if level + 1 == self.levels.len() {
            return Ok(false);
        }
        if K::OVERLAPPING || index == 1 {
            self.propagate_keys(store, level, false)?;
        }
        let min = store.geometry().min_entries(level);
        if self.count(store, level) >= min {
            return Ok(false);
        }
        let right = self.sibling(store, level, Side::Right)?;
        if let Some(right) = right.as_ref().filter(|right| right.count > min) {
            return self.take(store, level, right).map(|()| false);
        }
        let left = self.sibling(store, level, Side::Left)?;
        if let Some(left) = left.as_ref().filter(|left| left.count > min) {
            self.take(store, level, left)?;
            self.levels[level].index += 1;
            return Ok(false);
        }
        let (count, max) = (self.count(store, level), store.geometry().max_entries(level));
        let fits = |sibling: &Sibling<K::Pointer>| sibling.count + count <= max;
        match (left.filter(fits), right.filter(fits)) {
            (Some(left), _) => self.join_left(store, level, left),
            (None, Some(right)) => self.join_right(store, level, right),
            // Nothing to join with: a block below the minimum is legal then.
            (None, None) => Ok(false),
        }
    }

    /// Appends the block at `level` to its left sibling and goes there.
    fn join_left<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        left: Sibling<K::Pointer>,
    ) -> Result<bool, S::Error> {
        let place = &mut self.levels[level];
        let index = place.index + left.count;
        let kept = Level { pointer: left.pointer, buffer: Some(left.buffer), index };
        let gone = std::mem::replace(place, kept);
        let Some(buffer) = gone.buffer else { return Err(self.misplaced(store, level)) };
        self.join(store, level, gone.pointer, buffer)
    }

    /// Appends the right sibling to the block at `level`.
    fn join_right<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        right: Sibling<K::Pointer>,
    ) -> Result<bool, S::Error> {
        if !self.step_right(store, level + 1)? {
            return Err(self.misplaced(store, level + 1));
        }
        self.join(store, level, right.pointer, right.buffer)
    }

    /// Appends `gone`, the right sibling of the block at `level`, to that block and frees it.
    fn join<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        gone: K::Pointer,
        gone_buffer: BufferRef,
    ) -> Result<bool, S::Error> {
        let above = &self.levels[level + 1];
        if self.node(store, level + 1).pointer(above.index.max(1)) != gone {
            return Err(self.misplaced(store, level + 1));
        }
        let place = &self.levels[level];
        let Some(kept) = place.buffer.clone() else { return Err(self.misplaced(store, level)) };
        let frame = Frame::block(store.geometry(), level);
        let beyond = Node::<K>::block(&gone_buffer, frame).right();
        let beyond_buffer = beyond.map(|beyond| read_block(store, beyond, level)).transpose()?;
        edit_block::<K, S>(store, &kept, level, |node| {
            let source = Node::block(&gone_buffer, frame);
            node.append(&source, 1, source.count());
            node.set_right(beyond.unwrap_or(K::Pointer::NONE));
        });
        let pointer = place.pointer;
        if let Some(beyond) = beyond_buffer {
            edit_block::<K, S>(store, &beyond, level, |node| node.set_left(pointer));
        }
        store.free(gone, gone_buffer)?;
        Ok(true)
    }
}

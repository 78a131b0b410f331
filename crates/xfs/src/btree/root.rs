//! Growing and shrinking at the root (docs/algorithms/btrees.md#roots).

use super::cursor::{Cursor, Level, edit_block};
use super::frame::Frame;
use super::insert::Insertion;
use super::kind::BtreeKind;
use super::node::{Child, Node, NodeEdit};
use super::split::{Reserve, Split, init, new_header};
use super::store::{NewRoot, Root, WriteTree};
use crate::bytes::EditBytes;
use crate::cache::BufferRef;
use crate::format::{BmapRoot, FieldDefect, Rule};

impl<K: BtreeKind> Cursor<K> {
    /// Puts a new root block over the two halves of the old root.
    pub(super) fn grow_root<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        split: &Split<K::Pointer>,
        blocks: &mut Reserve<K::Pointer>,
    ) -> Result<(), S::Error> {
        let level = self.levels.len();
        let (pointer, buffer) = self.next_block(store, blocks)?;
        let (left, left_buffer) = &split.left;
        let children = [
            self.child(store, level - 1, *left, left_buffer)?,
            self.child(store, level - 1, split.pointer, &split.buffer)?,
        ];
        self.fill_node(store, level, pointer, &buffer, |node| {
            children.iter().for_each(|child| node.push(child));
        });
        // The plan kept the height within the maximum, which is far below 255.
        store.set_root(NewRoot::Block { pointer, height: (level + 1) as u8 })?;
        let index = if split.moved { 2 } else { 1 };
        self.levels.push(Level { pointer, buffer: Some(buffer), index });
        Ok(())
    }

    /// As [`push_down`](Self::push_down), of a root that has to become smaller. The cursor is at no
    /// record afterwards.
    pub(crate) fn lower_root<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
    ) -> Result<Insertion, S::Error> {
        self.load_root(store)?;
        let hint = self.node(store, self.levels.len() - 1).pointer(1);
        let Some((pointer, buffer)) = store.allocate(hint)? else { return Ok(Insertion::NoSpace) };
        self.check_new(store, pointer, &buffer, &[])?;
        self.push_down(store, &mut vec![(pointer, buffer)].into_iter())?;
        self.reset();
        Ok(Insertion::Done)
    }

    /// Moves the entries of the root inside the inode to a new block; the root keeps one entry,
    /// for that block, and is one level higher.
    pub(super) fn push_down<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        blocks: &mut Reserve<K::Pointer>,
    ) -> Result<(), S::Error> {
        let top = self.levels.len() - 1;
        let (pointer, buffer) = self.next_block(store, blocks)?;
        let Root::Inline(root) = store.root() else { return Err(self.misplaced(store, top)) };
        let root = root.clone();
        let source = Node::inline(&root, Frame::inline(store.geometry(), &root));
        // An inode is at most half a block, so a full root leaves room for the entry to come.
        let (count, limit) = (source.count() as u64, store.geometry().node_max as u64);
        FieldDefect::unless(count < limit, "numrecs", count, Rule::AtMost(limit))
            .map_err(|defect| self.fault(store, top, defect))?;
        self.fill_node(store, top, pointer, &buffer, |node| {
            node.append(&source, 1, source.count());
        });
        let Child { low, high, .. } = self.child(store, top, pointer, &buffer)?;
        self.edit_node(store, top, |node| {
            put_root_level(node.raw(), top + 1);
            node.set_count(0);
            node.push(&Child { low, high, pointer });
        })?;
        let index = std::mem::replace(&mut self.levels[top].index, 1);
        self.levels.insert(top, Level { pointer, buffer: Some(buffer), index });
        Ok(())
    }

    /// Makes the only child of a root block the root.
    pub(super) fn shrink_root<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
    ) -> Result<(), S::Error> {
        let top = self.levels.len() - 1;
        if top == 0 || self.count(store, top) != 1 {
            return Ok(());
        }
        let pointer = self.node(store, top).pointer(1);
        if pointer != self.levels[top - 1].pointer {
            return Err(self.misplaced(store, top));
        }
        // One less than a height that fits.
        store.set_root(NewRoot::Block { pointer, height: top as u8 })?;
        let Level { pointer, buffer: Some(buffer), .. } = self.levels.remove(top) else {
            return Ok(());
        };
        store.free(pointer, buffer)
    }

    /// Moves the entries of the only child of the root inside the inode up into it, if they fit.
    /// A leaf stays: records in the inode are another format of the fork.
    pub(super) fn pull_up<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
    ) -> Result<(), S::Error> {
        let top = self.levels.len() - 1;
        let root = self.node(store, top);
        let (capacity, only) = (root.max(), root.count() == 1);
        drop(root);
        if !only || top < 2 || self.count(store, top - 1) > capacity {
            return Ok(());
        }
        let Some(buffer) = self.levels[top - 1].buffer.clone() else { return Ok(()) };
        let frame = Frame::block(store.geometry(), top - 1);
        self.edit_node(store, top, |node| {
            let child = Node::block(&buffer, frame);
            put_root_level(node.raw(), top - 1);
            node.set_count(0);
            node.append(&child, 1, child.count());
        })?;
        let Level { pointer, index, .. } = self.levels.remove(top - 1);
        self.levels[top - 1].index = index;
        store.free(pointer, buffer)
    }

    /// Writes the header of a new block at `level` and lets `fill` store its entries.
    fn fill_node<S: WriteTree<Kind = K>>(
        &self,
        store: &mut S,
        level: usize,
        pointer: K::Pointer,
        buffer: &BufferRef,
        fill: impl FnOnce(&mut NodeEdit<'_, K>),
    ) {
        let (frame, header) =
            (Frame::block(store.geometry(), level), new_header(store, pointer, level));
        edit_block::<K, S>(store, buffer, level, |node| {
            init::<S>(node.raw(), frame, &header);
            fill(node);
        });
    }
}

/// Stores the level of the root inside an inode.
fn put_root_level(edit: &mut EditBytes<'_>, level: usize) {
    // At most the maximum height.
    edit.put_be16(BmapRoot::LEVEL, level as u16);
}

//! Splitting a full block in two (docs/algorithms/btrees.md#insertion).

use super::cursor::{Cursor, edit_block};
use super::frame::Frame;
use super::kind::{BlockPointer, BtreeKind};
use super::node::{Child, Node};
use super::shift::Side;
use super::store::{PointerOf, ReadTree, WriteTree};
use crate::bytes::EditBytes;
use crate::cache::BufferRef;
use crate::format::{FieldDefect, NewHeader, Rule};
use std::sync::Arc;

/// Blocks taken before an insertion changes anything, in the order they will be used.
pub(super) type Reserve<P> = std::vec::IntoIter<(P, BufferRef)>;

/// The right half that a split made.
#[derive(Debug)]
pub(super) struct Split<P> {
    pub(super) pointer: P,
    pub(super) buffer: BufferRef,
    /// The left half.
    pub(super) left: (P, BufferRef),
    /// Whether the cursor went over to the right half.
    pub(super) moved: bool,
}

impl<K: BtreeKind> Cursor<K> {
    /// Moves the upper half of the block at `level` to a new block on its right, and the cursor
    /// with it if its index is there.
    pub(super) fn split<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        blocks: &mut Reserve<K::Pointer>,
    ) -> Result<Split<K::Pointer>, S::Error> {
        let beyond = self.sibling(store, level, Side::Right)?;
        let (pointer, buffer) = self.next_block(store, blocks)?;
        let place = &self.levels[level];
        let (left, index) = (place.pointer, place.index);
        let Some(left_buffer) = place.buffer.clone() else {
            return Err(self.misplaced(store, level));
        };
        let taken = beyond.as_ref().is_some_and(|beyond| Arc::ptr_eq(&beyond.buffer, &buffer));
        if taken || Arc::ptr_eq(&left_buffer, &buffer) {
            return Err(self.not_free(store, pointer));
        }
        let frame = Frame::block(store.geometry(), level);
        let count = Node::<K>::block(&left_buffer, frame).count();
        let moving = count / 2 + usize::from(count % 2 == 1 && index <= count / 2 + 1);
        let keep = count - moving;

        let header = new_header(store, pointer, level);
        edit_block::<K, S>(store, &buffer, level, |node| {
            init::<S>(node.raw(), frame, &header);
            node.append(&Node::block(&left_buffer, frame), keep + 1, count);
            node.set_left(left);
            node.set_right(beyond.as_ref().map_or(K::Pointer::NONE, |beyond| beyond.pointer));
        });
        edit_block::<K, S>(store, &left_buffer, level, |node| {
            node.set_count(keep);
            node.set_right(pointer);
        });
        if let Some(beyond) = beyond {
            edit_block::<K, S>(store, &beyond.buffer, level, |node| node.set_left(pointer));
        }
        if K::OVERLAPPING {
            self.propagate_keys(store, level, false)?;
        }
        let moved = index > keep + 1;
        if moved {
            let place = &mut self.levels[level];
            (place.pointer, place.buffer) = (pointer, Some(buffer.clone()));
            place.index = index - keep;
        }
        Ok(Split { pointer, buffer, left: (left, left_buffer), moved })
    }

    /// The next of the blocks taken for this insertion.
    pub(super) fn next_block<S: ReadTree<Kind = K>>(
        &self,
        store: &S,
        blocks: &mut Reserve<K::Pointer>,
    ) -> Result<(K::Pointer, BufferRef), S::Error> {
        // The plan counts the same blocks as the change, unless the tree links in circles.
        blocks.next().ok_or_else(|| {
            let rule = Rule::Text("in agreement with the siblings");
            self.fault(store, 0, FieldDefect { field: "numrecs", found: 0, rule })
        })
    }

    /// The entry of a parent for the block in `buffer` at `level`.
    pub(super) fn child<S: ReadTree<Kind = K>>(
        &self,
        store: &S,
        level: usize,
        pointer: K::Pointer,
        buffer: &BufferRef,
    ) -> Result<Child<K>, S::Error> {
        let bounds = Node::<K>::block(buffer, Frame::block(store.geometry(), level)).bounds();
        let (low, high) = bounds.ok_or_else(|| self.misplaced(store, level))?;
        Ok(Child { low, high, pointer })
    }

    #[cold]
    fn not_free<S: ReadTree<Kind = K>>(&self, store: &S, pointer: K::Pointer) -> S::Error {
        let (found, rule) = (pointer.number(), Rule::Text("a free block"));
        self.fault(store, 0, FieldDefect { field: "allocated block", found, rule })
    }
}

/// The header of a block that joins the tree at `level`.
pub(super) fn new_header<S: WriteTree>(
    store: &S,
    pointer: PointerOf<S>,
    level: usize,
) -> NewHeader {
    NewHeader {
        // At most the maximum height.
        level: level as u16,
        sector: store.sector_of(pointer).0,
        owner: store.owner(),
        uuid: store.uuid(),
    }
}

/// Writes the header of a new block of the tree.
pub(super) fn init<S: ReadTree>(edit: &mut EditBytes<'_>, frame: Frame, header: &NewHeader) {
    frame.layout().init(edit, <S::Kind as BtreeKind>::TREE, header);
}

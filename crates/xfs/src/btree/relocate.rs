//! A block of a tree given another place.

use super::cursor::{Cursor, edit_block};
use super::frame::Frame;
use super::insert::Insertion;
use super::kind::{BlockPointer, BtreeKind};
use super::lookup::Lookup;
use super::node::Node;
use super::shift::Side;
use super::split::{init, new_header};
use super::store::{NewRoot, Root, WriteTree};
use super::verify::read_block;
use crate::format::{FieldDefect, HeaderLayout, Rule};

impl<K: BtreeKind> Cursor<K> {
    /// Moves the block at `pointer`, which belongs to the tree, to a new one near `hint`: parent or
    /// root, and both siblings, point there afterwards. The cursor is at no record then.
    ///
    /// # Errors
    /// The block is no block of this tree; it is damaged; blocks cannot be read or given back.
    pub(crate) fn relocate<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        pointer: K::Pointer,
        hint: K::Pointer,
    ) -> Result<Insertion, S::Error> {
        let level = self.seek_block(store, pointer)?;
        let Some(old) = self.levels[level].buffer.clone() else {
            return Err(self.misplaced(store, level));
        };
        let (left, right) =
            (self.sibling(store, level, Side::Left)?, self.sibling(store, level, Side::Right)?);
        let Some((new, buffer)) = store.allocate(hint)? else { return Ok(Insertion::NoSpace) };
        self.check_new(store, new, &buffer, &[])?;
        let (header, frame) =
            (new_header(store, new, level), Frame::block(store.geometry(), level));
        edit_block::<K, S>(store, &buffer, level, |node| {
            let source = Node::block(&old, frame);
            init::<S>(node.raw(), frame, &header);
            node.append(&source, 1, source.count());
            node.set_left(left.as_ref().map_or(K::Pointer::NONE, |left| left.pointer));
            node.set_right(right.as_ref().map_or(K::Pointer::NONE, |right| right.pointer));
        });
        if let Some(left) = left {
            edit_block::<K, S>(store, &left.buffer, level, |node| node.set_right(new));
        }
        if let Some(right) = right {
            edit_block::<K, S>(store, &right.buffer, level, |node| node.set_left(new));
        }
        match (self.levels.get(level + 1).map(|parent| parent.index), store.root()) {
            (Some(index), _) => {
                self.edit_node(store, level + 1, |node| node.put_pointer(index, new))?;
            }
            (None, Root::Block { height, .. }) => {
                store.set_root(NewRoot::Block { pointer: new, height })?;
            }
            (None, Root::Inline(_)) => return Err(self.misplaced(store, level)),
        }
        store.free(pointer, old)?;
        self.reset();
        Ok(Insertion::Done)
    }

    /// Moves to the first entry of the block at `pointer`; returns its level.
    fn seek_block<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        pointer: K::Pointer,
    ) -> Result<usize, S::Error> {
        let level = {
            let buffer = store.read(pointer, 0)?;
            usize::from(HeaderLayout::level(&buffer.read()))
        };
        let buffer = read_block(store, pointer, level)?;
        let node = Node::<K>::block(&buffer, Frame::block(store.geometry(), level));
        let key = (node.count() > 0).then(|| node.key(1));
        drop(node);
        match key {
            Some(key) => drop(self.lookup(store, &key, Lookup::LessOrEqual)?),
            // A tree without records is its root.
            None => self.load_root(store)?,
        }
        if self.levels.get(level).is_some_and(|place| place.pointer == pointer) {
            return Ok(level);
        }
        let rule = Rule::Text("a block on the way to its first key");
        let defect = FieldDefect { field: "pointer", found: pointer.number(), rule };
        Err(self.fault(store, level, defect))
    }
}

//! A place in a tree.
//!
//! A cursor holds one block and one index per level, from the leaf (level 0) to the root. Indexes
//! count from 1; 0 is before the first entry and the number of entries plus one is behind the
//! last. The store is passed to each call.
//!
//! A cursor is good while the lock that guards the tree (group or inode) is held and nothing else
//! changes the tree: after a change through one cursor every other cursor of the same tree must be
//! [`reset`](Cursor::reset) or looked up anew. It remembers the blocks of its path, so that the
//! next lookup nearby reads none of them again.

use super::frame::Frame;
use super::kind::{BlockPointer, BtreeKind};
use super::node::{Node, NodeEdit};
use super::store::{NewRoot, ReadTree, Root, WriteTree};
use super::verify::{corrupt, read_block};
use crate::bytes::{Changes, EditBytes};
use crate::cache::BufferRef;
use crate::format::{FieldDefect, Rule};
use smallvec::SmallVec;
use std::fmt;
use std::ops::ControlFlow;

/// A place in a tree of kind `K`.
pub struct Cursor<K: BtreeKind> {
    /// The path, leaf first; empty before the first lookup.
    pub(super) levels: SmallVec<[Level<K::Pointer>; 5]>,
    active: bool,
}

/// One block of the path.
#[derive(Clone, Debug)]
pub(super) struct Level<P> {
    /// [`BlockPointer::NONE`] for the root inside an inode.
    pub(super) pointer: P,
    /// `None` for the root inside an inode.
    pub(super) buffer: Option<BufferRef>,
    pub(super) index: usize,
}

impl<K: BtreeKind> Default for Cursor<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: BtreeKind> Clone for Cursor<K> {
    fn clone(&self) -> Self {
        Self { levels: self.levels.clone(), active: self.active }
    }
}

impl<K: BtreeKind> fmt::Debug for Cursor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.levels.iter().rev().map(|level| (level.pointer, level.index));
        f.debug_struct(K::TREE.name())
            .field("active", &self.active)
            .field("path", &path.collect::<SmallVec<[_; 5]>>())
            .finish()
    }
}

impl<K: BtreeKind> Cursor<K> {
    /// A cursor that is nowhere yet.
    #[must_use]
    pub fn new() -> Self {
        Self { levels: SmallVec::new(), active: false }
    }

    /// Forgets the place, the blocks of the path and the active state.
    pub fn reset(&mut self) {
        self.levels.clear();
        self.active = false;
    }

    /// Whether a search along this cursor goes on (docs/algorithms/near-mode.md#active-cursors):
    /// set by a lookup that finds a record, cleared by one that does not. Steps and changes leave
    /// it alone; a search that runs off the tree clears it with [`set_active`](Self::set_active).
    #[must_use]
    pub const fn is_active(&self) -> bool {
        self.active
    }

    /// Sets or clears the active state.
    pub const fn set_active(&mut self, active: bool) {
        self.active = active;
    }

    /// Index in the leaf, from 1; 0 before the first record of the tree, the number of records
    /// plus one behind the last of the leaf. 0 if the cursor is nowhere.
    #[must_use]
    pub fn index(&self) -> usize {
        self.levels.first().map_or(0, |leaf| leaf.index)
    }

    /// Moves inside the leaf, to `index` from 1; `false`, and no move, if there is no such record.
    pub fn set_index<S: ReadTree<Kind = K>>(&mut self, store: &S, index: usize) -> bool {
        let exists = (1..=self.leaf_len(store)).contains(&index);
        if exists {
            self.levels[0].index = index;
        }
        exists
    }

    /// Records in the leaf.
    #[must_use]
    pub fn leaf_len<S: ReadTree<Kind = K>>(&self, store: &S) -> usize {
        if self.levels.is_empty() { 0 } else { self.count(store, 0) }
    }

    /// Whether the leaf is the last one of the tree.
    #[must_use]
    pub fn is_rightmost_leaf<S: ReadTree<Kind = K>>(&self, store: &S) -> bool {
        !self.levels.is_empty() && self.node(store, 0).right().is_none()
    }

    /// The record at the cursor; `None` before the first and behind the last record of the leaf.
    ///
    /// # Errors
    /// The record is not a valid one.
    pub fn record<S: ReadTree<Kind = K>>(&self, store: &S) -> Result<Option<K::Record>, S::Error> {
        if self.levels.is_empty() {
            return Ok(None);
        }
        let (node, index) = (self.node(store, 0), self.levels[0].index);
        if index == 0 || index > node.count() {
            return Ok(None);
        }
        let record = node.record(index);
        K::validate(&record).map_err(|defect| self.fault(store, 0, defect))?;
        Ok(Some(record))
    }

    /// Visits the records from the cursor to the end of its leaf, moving along, while `visit` asks
    /// for more: many steps at the price of one look at the leaf.
    ///
    /// # Errors
    /// A record is not a valid one, or not behind the one before it.
    pub fn walk_leaf<S: ReadTree<Kind = K>>(
        &mut self,
        store: &S,
        mut visit: impl FnMut(K::Record) -> ControlFlow<()>,
    ) -> Result<(), S::Error> {
        let first = self.index();
        if first == 0 {
            return Ok(());
        }
        let node = self.node(store, 0);
        let (mut index, mut before) = (first, None);
        let outcome = loop {
            if index > node.count() {
                break Ok(());
            }
            let record = node.record(index);
            let key = Some(K::key(&record));
            if before >= key {
                break Err(None);
            }
            if let Err(defect) = K::validate(&record) {
                break Err(Some(defect));
            }
            if visit(record).is_break() {
                break Ok(());
            }
            (index, before) = (index + 1, key);
        };
        drop(node);
        self.levels[0].index = index;
        outcome.map_err(|defect| match defect {
            Some(defect) => self.fault(store, 0, defect),
            None => self.disorder(store),
        })
    }

    /// The records before and behind the one at the cursor, as far as the leaf has them.
    #[must_use]
    pub fn beside<S: ReadTree<Kind = K>>(
        &self,
        store: &S,
    ) -> (Option<K::Record>, Option<K::Record>) {
        if self.levels.is_empty() {
            return (None, None);
        }
        let (node, index) = (self.node(store, 0), self.levels[0].index);
        let at = |index: usize| (1..=node.count()).contains(&index).then(|| node.record(index));
        (at(index.wrapping_sub(1)), at(index + 1))
    }

    /// Visits all blocks of a tree but the root; leaves are not read. A visit that fails ends it.
    ///
    /// # Errors
    /// Those of the store and of `visit`.
    pub fn for_each_below_root<S: ReadTree<Kind = K>>(
        store: &mut S,
        mut visit: impl FnMut(K::Pointer) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        let mut cursor = Self::new();
        cursor.load_root(store)?;
        let top = cursor.levels.len() - 1;
        cursor.visit_below(store, top, &mut visit)
    }

    /// Visits the blocks of the path and their siblings: the blocks that a deletion here could
    /// free.
    pub fn for_each_block<S: ReadTree<Kind = K>>(
        &self,
        store: &S,
        mut visit: impl FnMut(K::Pointer),
    ) {
        for level in 0..self.levels.len() {
            let node = self.node(store, level);
            let siblings = if self.levels[level].buffer.is_some() {
                [node.left(), node.right()]
            } else {
                [None, None]
            };
            let own = self.levels[level].pointer.present();
            own.into_iter().chain(siblings.into_iter().flatten()).for_each(&mut visit);
        }
    }

    /// Visits the pointers below the block of the path at `level`, those of a block before those of
    /// its children; leaves are not read.
    fn visit_below<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        visit: &mut impl FnMut(K::Pointer) -> Result<(), S::Error>,
    ) -> Result<(), S::Error> {
        let children = if level == 0 { 0 } else { self.count(store, level) };
        (1..=children).try_for_each(|index| visit(self.node(store, level).pointer(index)))?;
        if level > 1 {
            for index in 1..=children {
                self.levels[level].index = index;
                self.descend(store, level - 1)?;
                self.visit_below(store, level - 1, visit)?;
            }
        }
        Ok(())
    }

    /// The block of the path at `level`, for reading.
    #[inline]
    pub(super) fn node<'a, S>(&'a self, store: &'a S, level: usize) -> Node<'a, K>
    where
        S: ReadTree<Kind = K>,
    {
        let geometry = store.geometry();
        match (&self.levels[level].buffer, store.root()) {
            (None, Root::Inline(root)) => Node::inline(root, Frame::inline(geometry, root)),
            (Some(buffer), _) => Node::block(buffer, Frame::block(geometry, level)),
            (None, Root::Block { .. }) => {
                unreachable!("only a root inside an inode has no buffer, and it never moves out")
            }
        }
    }

    /// Entries of the block of the path at `level`.
    #[inline]
    pub(super) fn count<S: ReadTree<Kind = K>>(&self, store: &S, level: usize) -> usize {
        self.node(store, level).count()
    }

    /// The error for a defect in the block of the path at `level`.
    #[cold]
    pub(super) fn fault<S>(&self, store: &S, level: usize, defect: FieldDefect) -> S::Error
    where
        S: ReadTree<Kind = K>,
    {
        let pointer = self.levels.get(level).and_then(|level| level.pointer.present());
        corrupt(store, pointer, level, defect)
    }

    /// Prepares one level per level of the tree and loads the root.
    pub(super) fn load_root<S>(&mut self, store: &mut S) -> Result<(), S::Error>
    where
        S: ReadTree<Kind = K>,
    {
        let (pointer, height) = match store.root() {
            Root::Block { pointer, height } => (Some(pointer), u64::from(height)),
            Root::Inline(root) => (None, u64::from(root.level()) + 1),
        };
        let max = u64::from(store.geometry().max_height);
        let legal = height >= 1 && height <= max;
        if let Err(defect) = FieldDefect::unless(legal, "height", height, Rule::AtMost(max)) {
            return Err(corrupt(store, pointer, 0, defect));
        }
        let height = height as usize;
        let nowhere = Level { pointer: K::Pointer::NONE, buffer: None, index: 0 };
        self.levels.resize(height, nowhere.clone());
        match pointer {
            Some(pointer) => self.load(store, height - 1, pointer),
            None => {
                self.levels[height - 1] = nowhere;
                Ok(())
            }
        }
    }

    /// Makes `pointer` the block of the path at `level`. The index is left to the caller.
    #[inline]
    pub(super) fn load<S>(
        &mut self,
        store: &mut S,
        level: usize,
        pointer: K::Pointer,
    ) -> Result<(), S::Error>
    where
        S: ReadTree<Kind = K>,
    {
        let place = &mut self.levels[level];
        if place.pointer == pointer && place.buffer.is_some() {
            return Ok(());
        }
        // A failed read must not leave a pair that does not belong together.
        (place.pointer, place.buffer) = (K::Pointer::NONE, None);
        match read_block(store, pointer, level) {
            Ok(buffer) => {
                (place.pointer, place.buffer) = (pointer, Some(buffer));
                Ok(())
            }
            Err(error) => {
                self.levels.clear();
                Err(error)
            }
        }
    }

    /// Loads the child that the index at `level + 1` points at.
    #[inline]
    pub(super) fn descend<S>(&mut self, store: &mut S, level: usize) -> Result<(), S::Error>
    where
        S: ReadTree<Kind = K>,
    {
        let pointer = self.node(store, level + 1).pointer(self.levels[level + 1].index);
        self.load(store, level, pointer)
    }

    /// Changes the block of the path at `level`.
    pub(super) fn edit_node<S>(
        &self,
        store: &mut S,
        level: usize,
        change: impl FnOnce(&mut NodeEdit<'_, K>),
    ) -> Result<(), S::Error>
    where
        S: WriteTree<Kind = K>,
    {
        if let Some(buffer) = &self.levels[level].buffer {
            edit_block(store, buffer, level, change);
            return Ok(());
        }
        let Root::Inline(root) = store.root() else { return Ok(()) };
        let mut root = root.clone();
        let (frame, mut changes) = (Frame::inline(store.geometry(), &root), Changes::default());
        let edit = EditBytes::new(root.bytes_mut(), &mut changes);
        change(&mut NodeEdit::new(edit, frame));
        store.set_root(NewRoot::Inline(root))
    }
}

/// Changes a block of the tree.
pub(super) fn edit_block<K, S>(
    store: &mut S,
    buffer: &BufferRef,
    level: usize,
    change: impl FnOnce(&mut NodeEdit<'_, K>),
) where
    K: BtreeKind,
    S: WriteTree<Kind = K>,
{
    let frame = Frame::block(store.geometry(), level);
    change(&mut NodeEdit::new(store.edit(buffer).edit(), frame));
}

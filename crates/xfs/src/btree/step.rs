//! Walking to the neighbour (algorithms, section 1.3).
//!
//! Movement goes through the parents; sibling pointers must agree. In a leaf the keys on both
//! sides of a step must be in order: a walk therefore never sees the same record twice, however
//! corrupt the tree, and ends.

use super::cursor::Cursor;
use super::kind::{BlockPointer, BtreeKind};
use super::store::ReadTree;
use crate::format::{FieldDefect, Rule};

impl<K: BtreeKind> Cursor<K> {
    /// Moves one record forward; `false` at the end of the tree, with the cursor behind the last
    /// record. The active state stays.
    ///
    /// # Errors
    /// A block cannot be read, or the tree is corrupt.
    pub fn increment<S: ReadTree<Kind = K>>(&mut self, store: &mut S) -> Result<bool, S::Error> {
        if self.levels.is_empty() { Ok(false) } else { self.step_right(store, 0) }
    }

    /// Moves one record back; `false` at the start of the tree, with the cursor before the first
    /// record. The active state stays.
    ///
    /// # Errors
    /// A block cannot be read, or the tree is corrupt.
    pub fn decrement<S: ReadTree<Kind = K>>(&mut self, store: &mut S) -> Result<bool, S::Error> {
        if self.levels.is_empty() { Ok(false) } else { self.step_left(store, 0) }
    }

    /// Moves one entry forward at `level`; the levels below are left alone.
    pub(super) fn step_right<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
    ) -> Result<bool, S::Error> {
        let (node, index) = (self.node(store, level), self.levels[level].index);
        let count = node.count();
        let from = (1..=count).contains(&index).then(|| node.key(index));
        let last = (count > 0).then(|| node.key(count));
        let right = node.right();
        drop(node);
        if index < count {
            self.levels[level].index += 1;
            return self.check_order(store, level, from, false).map(|()| true);
        }
        let Some(right) = right else {
            self.levels[level].index = count + 1;
            return Ok(false);
        };
        let mut top = level + 1;
        while top < self.levels.len() && self.levels[top].index >= self.count(store, top) {
            top += 1;
        }
        if top == self.levels.len() {
            return Err(self.stray_sibling(store, level, "rightsib", right));
        }
        self.levels[top].index += 1;
        for below in (level..top).rev() {
            self.descend(store, below)?;
            self.levels[below].index = 1;
        }
        if self.levels[level].pointer != right {
            return Err(self.stray_sibling(store, level, "rightsib", right));
        }
        self.check_order(store, level, last, false).map(|()| true)
    }

    /// Moves one entry back at `level`; the levels below are left alone.
    pub(super) fn step_left<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
    ) -> Result<bool, S::Error> {
        let (node, index) = (self.node(store, level), self.levels[level].index);
        let count = node.count();
        let from = (1..=count).contains(&index).then(|| node.key(index));
        let first = (count > 0).then(|| node.key(1));
        let left = node.left();
        drop(node);
        if index > 1 {
            self.levels[level].index = (index - 1).min(count);
            return self.check_order(store, level, from, true).map(|()| count > 0);
        }
        let Some(left) = left else {
            self.levels[level].index = 0;
            return Ok(false);
        };
        let mut top = level + 1;
        while top < self.levels.len() && self.levels[top].index <= 1 {
            top += 1;
        }
        if top == self.levels.len() {
            return Err(self.stray_sibling(store, level, "leftsib", left));
        }
        self.levels[top].index = (self.levels[top].index - 1).min(self.count(store, top));
        for below in (level..top).rev() {
            self.descend(store, below)?;
            self.levels[below].index = self.count(store, below);
        }
        if self.levels[level].pointer != left {
            return Err(self.stray_sibling(store, level, "leftsib", left));
        }
        self.check_order(store, level, first, true).map(|()| true)
    }

    /// Checks that a step in a leaf went in the direction of the order. Nodes are not checked:
    /// while a tree is changed their keys may lag behind.
    fn check_order<S: ReadTree<Kind = K>>(
        &self,
        store: &S,
        level: usize,
        from: Option<K::Key>,
        backward: bool,
    ) -> Result<(), S::Error> {
        let (Some(from), 0) = (from, level) else { return Ok(()) };
        let index = self.levels[0].index;
        let here = self.node(store, 0).key(index);
        if if backward { here < from } else { here > from } {
            return Ok(());
        }
        let rule = Rule::Text("a record with a key between those of its neighbours");
        Err(self.fault(store, 0, FieldDefect { field: "record", found: index as u64, rule }))
    }

    #[cold]
    fn stray_sibling<S: ReadTree<Kind = K>>(
        &self,
        store: &S,
        level: usize,
        field: &'static str,
        sibling: K::Pointer,
    ) -> S::Error {
        let rule = Rule::Text("the neighbour its parents know");
        self.fault(store, level, FieldDefect { field, found: sibling.number(), rule })
    }
}

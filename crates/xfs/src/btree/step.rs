//! Walking to the neighbour (docs/algorithms/btrees.md#lookup).
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
        if index < count {
            let ordered = level > 0 || index == 0 || node.key(index) < node.key(index + 1);
            drop(node);
            self.levels[level].index += 1;
            return if ordered { Ok(true) } else { Err(self.disorder(store)) };
        }
        let last = (count > 0).then(|| node.key(count));
        let right = node.right();
        drop(node);
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
        let ordered = level > 0 || last < Some(self.node(store, 0).key(1));
        if ordered { Ok(true) } else { Err(self.disorder(store)) }
    }

    /// Moves one entry back at `level`; the levels below are left alone.
    pub(super) fn step_left<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
    ) -> Result<bool, S::Error> {
        let (node, index) = (self.node(store, level), self.levels[level].index);
        let count = node.count();
        if index > 1 {
            let ordered = level > 0 || index > count || node.key(index - 1) < node.key(index);
            drop(node);
            self.levels[level].index = (index - 1).min(count);
            return if ordered { Ok(count > 0) } else { Err(self.disorder(store)) };
        }
        let first = (count > 0).then(|| node.key(1));
        let left = node.left();
        drop(node);
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
        let last = self.levels[level].index;
        let ordered = level > 0 || first.is_none_or(|first| self.node(store, 0).key(last) < first);
        if ordered { Ok(true) } else { Err(self.disorder(store)) }
    }

    /// The error for a step in a leaf against the order. Nodes are not checked: while a tree is
    /// changed their keys may lag behind.
    #[cold]
    pub(super) fn disorder<S: ReadTree<Kind = K>>(&self, store: &S) -> S::Error {
        let rule = Rule::Text("a record with a key between those of its neighbours");
        let found = self.index() as u64;
        self.fault(store, 0, FieldDefect { field: "record", found, rule })
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

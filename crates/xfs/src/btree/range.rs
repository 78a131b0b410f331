//! Visiting all records of a range (docs/algorithms/btrees.md#lookup).

use super::cursor::Cursor;
use super::kind::BtreeKind;
use super::lookup::Lookup;
use super::store::ReadTree;
use crate::format::{FieldDefect, Rule};
use smallvec::SmallVec;
use std::ops::ControlFlow;

impl<K: BtreeKind> Cursor<K> {
    /// Visits all records in order, until `visit` breaks. The children of a block are read together
    /// ([`ReadTree::prefetch`]).
    ///
    /// # Errors
    /// A block cannot be read, the tree or a record is corrupt, or `visit` failed.
    pub fn for_each<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        mut visit: impl FnMut(K::Record) -> Result<ControlFlow<()>, S::Error>,
    ) -> Result<(), S::Error> {
        let mut more = self.seek_first(store)?;
        self.prefetch_children(store);
        while more && let Some(record) = self.record(store)? {
            if visit(record)?.is_break() {
                break;
            }
            more = self.increment(store)?;
            if self.index() == 1 {
                self.prefetch_children(store);
            }
        }
        Ok(())
    }

    /// At the first record of a leaf: begins to read the children of the blocks above that the
    /// path came to with this leaf.
    fn prefetch_children<S: ReadTree<Kind = K>>(&self, store: &S) {
        for level in 1..self.levels.len() {
            if self.levels[level].index != 1 {
                break;
            }
            let node = self.node(store, level);
            let children: Vec<_> = (2..=node.count()).map(|index| node.pointer(index)).collect();
            drop(node);
            store.prefetch(&children);
        }
    }

    /// Visits, in order, the records that cover something between `low` and `high`, both
    /// included, until `visit` breaks. The cursor is then at the record it broke at; else its
    /// place is unspecified.
    ///
    /// # Errors
    /// A block cannot be read, the tree or a record is corrupt, or `visit` failed.
    pub fn for_each_in_range<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        low: &K::Key,
        high: &K::Key,
        mut visit: impl FnMut(K::Record) -> Result<ControlFlow<()>, S::Error>,
    ) -> Result<(), S::Error> {
        if K::OVERLAPPING {
            return self.visit_overlapping(store, low, high, visit);
        }
        let mut more = self.lookup(store, low, Lookup::LessOrEqual)? || self.increment(store)?;
        while more && let Some(record) = self.record(store)? {
            if K::key(&record) > *high {
                break;
            }
            // Only the first record can end before the range.
            if K::high_key(&record) >= *low && visit(record)?.is_break() {
                break;
            }
            more = self.increment(store)?;
        }
        Ok(())
    }

    /// Depth first from the root, into every subtree whose highest key reaches the range.
    fn visit_overlapping<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        low: &K::Key,
        high: &K::Key,
        mut visit: impl FnMut(K::Record) -> Result<ControlFlow<()>, S::Error>,
    ) -> Result<(), S::Error> {
        self.load_root(store)?;
        let height = self.levels.len();
        // Last key seen per level. Keys ascend along a level, so that no entry is visited twice,
        // even where the pointers of a tree are corrupt.
        let mut seen: SmallVec<[Option<K::Key>; 8]> = SmallVec::from_elem(None, height);
        let mut level = height - 1;
        self.levels[level].index = 1;
        loop {
            let (node, index) = (self.node(store, level), self.levels[level].index);
            let first = (index <= node.count()).then(|| node.key(index));
            let Some(first) = first.filter(|first| first <= high) else {
                level += 1;
                if level == height {
                    return Ok(());
                }
                drop(node);
                self.levels[level].index += 1;
                continue;
            };
            let reaches = node.high_key(index) >= *low;
            drop(node);
            if seen[level].replace(first).is_some_and(|before| before >= first) {
                let rule = Rule::Text("an entry with a key after those before it");
                let found = index as u64;
                return Err(self.fault(store, level, FieldDefect { field: "key", found, rule }));
            }
            if reaches && level > 0 {
                level -= 1;
                self.descend(store, level)?;
                self.levels[level].index = 1;
                continue;
            }
            if reaches
                && let Some(record) = self.record(store)?
                && visit(record)?.is_break()
            {
                return Ok(());
            }
            self.levels[level].index += 1;
        }
    }
}

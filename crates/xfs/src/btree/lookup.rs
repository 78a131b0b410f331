//! Finding a place by key (docs/algorithms/btrees.md#lookup).

use super::cursor::Cursor;
use super::kind::BtreeKind;
use super::store::ReadTree;

/// Which record a lookup wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The last record at or before the key.
    LessOrEqual,
    /// The record at the key.
    Equal,
    /// The first record at or after the key.
    GreaterOrEqual,
}

impl<K: BtreeKind> Cursor<K> {
    /// Moves to the record that `wanted` describes; `false` if there is none. The cursor is active
    /// afterwards exactly if the record was found.
    ///
    /// Where a lookup that fails leaves the cursor: `Equal` at the slot an insertion of the key
    /// belongs to, `GreaterOrEqual` behind the last record of the tree, `LessOrEqual` before the
    /// first. A found `LessOrEqual` followed by a step forward is an insertion slot, too.
    ///
    /// # Errors
    /// A block cannot be read, or the tree is corrupt.
    pub fn lookup<S: ReadTree<Kind = K>>(
        &mut self,
        store: &mut S,
        key: &K::Key,
        wanted: Lookup,
    ) -> Result<bool, S::Error> {
        // A lookup that ends in an error has found nothing.
        self.set_active(false);
        self.load_root(store)?;
        for level in (1..self.levels.len()).rev() {
            let node = self.node(store, level);
            // The last child that starts at or before the key, else the first.
            let index = node.partition(|low| low <= key).max(1);
            let child = node.pointer(index);
            drop(node);
            self.levels[level].index = index;
            self.load(store, level - 1, child)?;
        }
        let leaf = self.node(store, 0);
        let (count, before) = (leaf.count(), leaf.partition(|low| low < key));
        let exact = before < count && leaf.key(before + 1) == *key;
        let more = leaf.right().is_some();
        drop(leaf);
        self.levels[0].index = match wanted {
            Lookup::LessOrEqual if !exact => before,
            _ => before + 1,
        };
        let found = match wanted {
            Lookup::Equal => exact,
            Lookup::LessOrEqual => self.levels[0].index > 0,
            Lookup::GreaterOrEqual if before == count && more => self.increment(store)?,
            Lookup::GreaterOrEqual => before < count,
        };
        self.set_active(found);
        Ok(found)
    }

    /// Moves to the first record of the tree; `false` if there is none.
    ///
    /// # Errors
    /// A block cannot be read, or the tree is corrupt.
    pub fn seek_first<S: ReadTree<Kind = K>>(&mut self, store: &mut S) -> Result<bool, S::Error> {
        self.load_root(store)?;
        let height = self.levels.len();
        self.levels[height - 1].index = 1;
        for level in (0..height - 1).rev() {
            self.descend(store, level)?;
            self.levels[level].index = 1;
        }
        Ok(self.leaf_len(store) > 0)
    }

    /// Moves to the last record of the tree; `false` if there is none.
    ///
    /// # Errors
    /// A block cannot be read, or the tree is corrupt.
    pub fn seek_last<S: ReadTree<Kind = K>>(&mut self, store: &mut S) -> Result<bool, S::Error> {
        self.load_root(store)?;
        let height = self.levels.len();
        self.levels[height - 1].index = self.count(store, height - 1);
        for level in (0..height - 1).rev() {
            self.descend(store, level)?;
            self.levels[level].index = self.count(store, level);
        }
        Ok(self.levels[0].index > 0)
    }
}

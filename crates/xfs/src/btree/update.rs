//! Overwriting a record in place (docs/algorithms/btrees.md#update).

use super::cursor::Cursor;
use super::kind::BtreeKind;
use super::store::{ReadTree, WriteTree};
use crate::format::{FieldDefect, Rule};

impl<K: BtreeKind> Cursor<K> {
    /// Replaces the record at the cursor. The new one must sort between its neighbours; a record
    /// that moves further is deleted and inserted.
    ///
    /// # Errors
    /// The cursor is not at a record, the record does not belong there (the tree is unchanged), or
    /// the parents are corrupt (the transaction must be given up).
    pub fn update<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        record: &K::Record,
    ) -> Result<(), S::Error> {
        let index = self.index();
        if index == 0 || index > self.leaf_len(store) {
            return Err(self.misplaced(store, 0));
        }
        self.check_between(store, record, index - 1, index + 1)?;
        let (old, new) = (self.node(store, 0).high_key(index), K::high_key(record));
        self.edit_node(store, 0, |leaf| leaf.put_record(index, record))?;
        if !K::OVERLAPPING && index != 1 {
            Ok(())
        } else if new >= old {
            self.propagate_growth(store, 0, new)
        } else {
            self.propagate_keys(store, 0, false)
        }
    }

    /// Checks that `record` sorts between the records at `left` and `right` of the leaf, as far as
    /// there are such.
    pub(super) fn check_between<S: ReadTree<Kind = K>>(
        &self,
        store: &S,
        record: &K::Record,
        left: usize,
        right: usize,
    ) -> Result<(), S::Error> {
        let (leaf, key) = (self.node(store, 0), K::key(record));
        let after_left = left == 0 || leaf.key(left) < key;
        if after_left && (right > leaf.count() || key < leaf.key(right)) {
            return Ok(());
        }
        let found = if after_left { right } else { left } as u64;
        let rule = Rule::Text("in order with the record to be stored beside it");
        Err(self.fault(store, 0, FieldDefect { field: "record", found, rule }))
    }
}

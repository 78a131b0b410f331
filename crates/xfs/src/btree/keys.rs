//! Keys of parents after a change (docs/algorithms/btrees.md#keys).

use super::cursor::Cursor;
use super::kind::BtreeKind;
use super::store::{ReadTree, WriteTree};
use crate::format::{FieldDefect, Rule};

impl<K: BtreeKind> Cursor<K> {
    /// Brings the entries of the path above `from` in line with the blocks below them.
    ///
    /// Without overlap the caller calls it when the first entry of the block changed, and it climbs
    /// while the entry it wrote is itself the first. With overlap any change may move the highest
    /// key; it stops where nothing changes, unless `force`: after blocks were joined an entry in
    /// the middle can be right while one further up is stale.
    pub(super) fn propagate_keys<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        from: usize,
        force: bool,
    ) -> Result<(), S::Error> {
        for level in from..self.levels.len() - 1 {
            let Some((low, high)) = self.node(store, level).bounds() else { return Ok(()) };
            let (above, index) = (level + 1, self.levels[level + 1].index);
            let parent = self.node(store, above);
            if index == 0 || index > parent.count() {
                drop(parent);
                return Err(self.misplaced(store, above));
            }
            if K::OVERLAPPING
                && !force
                && parent.key(index) == low
                && parent.high_key(index) == high
            {
                return Ok(());
            }
            drop(parent);
            self.edit_node(store, above, |node| node.put_keys(index, &low, &high))?;
            if !K::OVERLAPPING && index != 1 {
                return Ok(());
            }
        }
        Ok(())
    }

    /// As [`propagate_keys`](Self::propagate_keys), after a change that took nothing away: the
    /// entry at the cursor is new or covers more than before, up to `high`. The highest key of a
    /// block is then the higher of that and the one its parent has, without a look at the others.
    pub(super) fn propagate_growth<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        from: usize,
        high: K::Key,
    ) -> Result<(), S::Error> {
        if !K::OVERLAPPING {
            return self.propagate_keys(store, from, false);
        }
        for level in from..self.levels.len() - 1 {
            let low = self.node(store, level).key(1);
            let (above, index) = (level + 1, self.levels[level + 1].index);
            let parent = self.node(store, above);
            if index == 0 || index > parent.count() {
                drop(parent);
                return Err(self.misplaced(store, above));
            }
            let (old_low, old_high) = (parent.key(index), parent.high_key(index));
            drop(parent);
            if low == old_low && high <= old_high {
                return Ok(());
            }
            let high = high.max(old_high);
            self.edit_node(store, above, |node| node.put_keys(index, &low, &high))?;
        }
        Ok(())
    }

    /// The error for a cursor that does not stand where an operation needs it.
    #[cold]
    pub(super) fn misplaced<S: ReadTree<Kind = K>>(&self, store: &S, level: usize) -> S::Error {
        let index = self.levels.get(level).map_or(0, |level| level.index) as u64;
        let rule = Rule::Text("at an entry of the block");
        self.fault(store, level, FieldDefect { field: "cursor index", found: index, rule })
    }
}

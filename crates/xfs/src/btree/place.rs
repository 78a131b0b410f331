//! Records overwritten at a place that is known (docs/algorithms/btrees.md#update).

use super::cursor::{Cursor, edit_block};
use super::frame::Frame;
use super::kind::{BlockPointer, BtreeKind};
use super::node::Node;
use super::store::{PointerOf, WriteTree};
use super::verify::read_block;

impl<K: BtreeKind> Cursor<K> {
    /// The leaf of the record at the cursor and its index there; `None` in a root inside an inode.
    #[must_use]
    pub fn place(&self) -> Option<(K::Pointer, usize)> {
        let leaf = self.levels.first()?;
        leaf.pointer.present().map(|pointer| (pointer, leaf.index))
    }
}

/// Replaces a record by one with the same key, at a [place](Cursor::place) that it had before: no
/// search, and nothing above the leaf. `false`, and no change, if the record is not there. For trees
/// whose records do not overlap.
///
/// # Errors
/// The leaf cannot be read, or is none.
pub fn overwrite_at<S>(
    store: &mut S,
    (leaf, index): (PointerOf<S>, usize),
    old: &<S::Kind as BtreeKind>::Record,
    new: &<S::Kind as BtreeKind>::Record,
) -> Result<bool, S::Error>
where
    S: WriteTree,
    <S::Kind as BtreeKind>::Record: PartialEq,
{
    debug_assert!(!<S::Kind as BtreeKind>::OVERLAPPING, "nodes know where such records end");
    debug_assert!(<S::Kind as BtreeKind>::key(old) == <S::Kind as BtreeKind>::key(new));
    let buffer = read_block(store, leaf, 0)?;
    let node = Node::<S::Kind>::block(&buffer, Frame::block(store.geometry(), 0));
    let is_there = (1..=node.count()).contains(&index) && node.record(index) == *old;
    drop(node);
    if is_there {
        edit_block(store, &buffer, 0, |leaf| leaf.put_record(index, new));
    }
    Ok(is_there)
}

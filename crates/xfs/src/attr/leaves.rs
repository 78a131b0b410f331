//! Attribute leaves under the hash tree: how they split and merge, and finding an entry.

use super::entry::{Attribute, EntryState};
use crate::bytes::EditBytes;
use crate::da::{DaFork, DaForkMut, HashTree, LeafKind, Path, Side};
use crate::error::Error;
use crate::format::da_block::lower_bound;
use crate::format::{AttrItem, AttrLeafLayout, BufferKind};
use crate::geometry::Geometry;
use crate::units::FileBlock;
use std::cell::Cell;

/// Share of a block in percent below which a leaf looks for a neighbour to merge with.
const SPARSE_PERCENT: usize = 37;

/// The attribute leaf as the hash tree knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttrLeaves {
    pub(super) layout: AttrLeafLayout,
}

/// An entry that a split makes room for. It may take most of a block, so where the cut lies
/// depends on it, and one cut may not be enough: the split that finds a place also puts it there.
#[derive(Debug)]
pub(super) struct NewItem {
    item: AttrItem,
    placed: Cell<bool>,
}

/// The tree of an attribute fork.
pub(super) fn tree(geometry: &Geometry) -> HashTree<AttrLeaves> {
    let layout = AttrLeafLayout::new(geometry);
    HashTree::new(FileBlock(0), layout.tree(), AttrLeaves { layout })
}

impl AttrLeaves {
    fn index_of(&self, leaf: &[u8], hash: u32) -> usize {
        lower_bound(self.layout.count(leaf), hash, |index| self.layout.hash(leaf, index))
    }

    fn items(&self, leaf: &[u8]) -> Vec<AttrItem> {
        (0..self.layout.count(leaf)).map(|index| self.layout.item(leaf, index)).collect()
    }

    /// Bytes of entries and items.
    fn content(&self, leaf: &[u8]) -> usize {
        self.layout.capacity() - self.layout.free(leaf)
    }

    /// Where to cut `items` so that both parts fit a leaf and are as equal as can be.
    fn cut(&self, items: &[AttrItem]) -> Option<usize> {
        let total: usize = items.iter().map(AttrItem::size).sum();
        let mut left = 0;
        let mut best = None;
        for (index, item) in items.iter().enumerate() {
            let right = total - left;
            if index > 0 && left.max(right) <= self.layout.capacity() {
                let distance = left.abs_diff(right);
                if best.is_none_or(|(_, least)| distance < least) {
                    best = Some((index, distance));
                }
            }
            left += item.size();
        }
        best.map(|(index, _)| index)
    }
}

impl LeafKind for AttrLeaves {
    const KIND: BufferKind = BufferKind::AttrLeaf;

    type Entry = NewItem;

    fn init(&self, leaf: &mut EditBytes<'_>) {
        self.layout.rebuild(leaf, []);
    }

    fn last_hash(&self, leaf: &[u8]) -> Option<u32> {
        let last = self.layout.count(leaf).checked_sub(1)?;
        Some(self.layout.hash(leaf, last))
    }

    fn split(&self, left: &mut EditBytes<'_>, right: &mut EditBytes<'_>, entry: &NewItem) -> Side {
        let at = self.index_of(left.bytes(), entry.item.hash());
        let mut items = self.items(left.bytes());
        items.insert(at, entry.item.clone());
        let (cut, side) = if let Some(cut) = self.cut(&items) {
            entry.placed.set(true);
            (cut, if at < cut { Side::Left } else { Side::Right })
        } else {
            // Big neighbours on both sides: cut here, and a second split of the right half gives
            // the entry a leaf of its own. Neither side is empty, or one cut would have done.
            items.remove(at);
            (at, Side::Right)
        };
        self.layout.rebuild(right, &items[cut..]);
        self.layout.rebuild(left, &items[..cut]);
        side
    }

    fn is_empty(&self, leaf: &[u8]) -> bool {
        self.layout.count(leaf) == 0
    }

    fn is_sparse(&self, leaf: &[u8]) -> bool {
        self.content(leaf) * 100 < self.layout.block_size * SPARSE_PERCENT
    }

    fn can_merge(&self, left: &[u8], right: &[u8]) -> bool {
        let sum = self.layout.header_size() + self.content(left) + self.content(right);
        sum <= self.layout.block_size / 4 * 3
    }

    fn merge(&self, kept: &mut EditBytes<'_>, dropped: &[u8], side: Side) {
        let (kept_items, dropped) = (self.items(kept.bytes()), self.items(dropped));
        let (left, right) = match side {
            Side::Left => (dropped, kept_items),
            Side::Right => (kept_items, dropped),
        };
        self.layout.rebuild(kept, left.iter().chain(&right));
    }
}

/// Finds the entry of this state that is `attribute`: the path to its leaf, and its index there.
pub(super) fn find<F: DaFork + ?Sized>(
    fork: &mut F,
    attribute: &Attribute<'_>,
    state: EntryState,
) -> Result<Option<(Path, usize)>, Error> {
    let tree = tree(fork.geometry());
    let leaves = AttrLeaves { layout: AttrLeafLayout::new(fork.geometry()) };
    let hash = attribute.hash(fork.geometry());
    let mut path = tree.descend(fork, hash)?;
    loop {
        let found = {
            let leaf = path.leaf().read();
            let count = leaves.layout.count(&leaf);
            (leaves.index_of(&leaf, hash)..count)
                .take_while(|index| leaves.layout.hash(&leaf, *index) == hash)
                .find(|index| attribute.is_entry(&leaves.layout.entry(&leaf, *index), state))
                .ok_or_else(|| leaves.last_hash(&leaf))
        };
        match found {
            Ok(index) => return Ok(Some((path, index))),
            // Equal hashes may go on in the next leaf; an empty leaf ends nothing.
            Err(last) if last.is_none_or(|last| last <= hash) => {
                if !tree.next_leaf(fork, &mut path)? {
                    return Ok(None);
                }
            }
            Err(_) => return Ok(None),
        }
    }
}

/// Adds an item to the leaf of `path`, which is where its hash belongs, or to what that leaf is
/// split into.
pub(super) fn insert<F: DaForkMut + ?Sized>(
    fork: &mut F,
    mut path: Path,
    item: AttrItem,
) -> Result<(), Error> {
    let tree = tree(fork.geometry());
    let leaves = AttrLeaves { layout: AttrLeafLayout::new(fork.geometry()) };
    if leaves.layout.free(&path.leaf().read()) >= item.size() {
        let mut guard = fork.edit(path.leaf());
        let index = leaves.index_of(&guard, item.hash());
        leaves.layout.insert(&mut guard.edit(), index, &item);
    } else {
        let entry = NewItem { item, placed: Cell::new(false) };
        while !entry.placed.get() {
            tree.split(fork, &mut path, &entry)?;
        }
    }
    tree.fix_hashes(fork, &path);
    Ok(())
}

//! Inserting a record (docs/algorithms/btrees.md#insertion).

use super::cursor::Cursor;
use super::kind::{BlockPointer, BtreeKind};
use super::node::Entry;
use super::shift::{Sibling, Side};
use super::split::{Reserve, Split};
use super::store::{PointerOf, ReadTree, Root, WriteTree};
use crate::cache::BufferRef;
use crate::format::{FieldDefect, Rule};
use smallvec::SmallVec;

/// How an insertion went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Insertion {
    /// The record is in the tree.
    Done,
    /// The store had no block for a split. The tree is unchanged, and blocks that were taken have
    /// been given back.
    NoSpace,
}

/// How a block gets room for one more entry.
enum EntryFit<P> {
    /// It has room.
    Enough,
    /// The root inside the inode is full and moves to a block.
    PushDown,
    /// One entry moves to a sibling.
    Shift(Sibling<P>),
    /// Half of it moves to a new block.
    Split,
}

impl<K: BtreeKind> Cursor<K> {
    /// Inserts `record` at the cursor; the record there moves up. The cursor must be at the slot
    /// the record belongs to (see [`lookup`](Self::lookup)); afterwards it is at the new record.
    ///
    /// All blocks an insertion needs are taken before the first change, so that
    /// [`Insertion::NoSpace`] leaves the tree as it was.
    ///
    /// # Errors
    /// The record does not belong here, a block cannot be read, or the tree is corrupt. The tree
    /// may be half changed: the transaction must be given up.
    pub fn insert<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        record: &K::Record,
    ) -> Result<Insertion, S::Error> {
        let index = self.index();
        if index == 0 || index > self.leaf_len(store) + 1 {
            return Err(self.misplaced(store, 0));
        }
        self.check_between(store, record, index - 1, index)?;
        let Some(mut blocks) = self.reserve(store)? else { return Ok(Insertion::NoSpace) };
        let mut entry = Entry::Record(*record);
        // Per level that was split: whether the path stayed in the left half.
        let mut stayed = SmallVec::<[bool; 8]>::new();
        for level in 0.. {
            let Some(split) = self.insert_at(store, level, &entry, &mut blocks)? else { break };
            if level + 1 == self.levels.len() {
                self.grow_root(store, &split, &mut blocks)?;
                break;
            }
            stayed.push(!split.moved);
            self.levels[level + 1].index += 1;
            entry = Entry::Child(self.child(store, level, split.pointer, &split.buffer)?);
        }
        // Parents point at the entries inserted last: the right halves. Top down, because a step
        // to the left may have to climb.
        for level in (0..stayed.len()).rev().filter(|level| stayed[*level]) {
            if !self.step_left(store, level + 1)? {
                return Err(self.misplaced(store, level + 1));
            }
        }
        Ok(Insertion::Done)
    }

    /// Inserts `entry` at the index of `level`, making room first.
    fn insert_at<S: WriteTree<Kind = K>>(
        &mut self,
        store: &mut S,
        level: usize,
        entry: &Entry<K>,
        blocks: &mut Reserve<K::Pointer>,
    ) -> Result<Option<Split<K::Pointer>>, S::Error> {
        let slot = self.levels[level].index;
        if slot == 0 || slot > self.count(store, level) + 1 {
            return Err(self.misplaced(store, level));
        }
        let split = match self.room(store, level, slot)? {
            EntryFit::Enough => None,
            EntryFit::PushDown => self.push_down(store, blocks).map(|()| None)?,
            EntryFit::Shift(sibling) => {
                let count = self.count(store, level);
                let half = if K::SHIFTS_ONE { 1 } else { (count - sibling.count).div_ceil(2) };
                // The slot of the new entry stays in the block.
                let width = match sibling.side {
                    Side::Right => half.min(count - slot),
                    Side::Left => half.min(slot - 1),
                };
                self.give(store, level, &sibling, width)?;
                if sibling.side == Side::Left {
                    self.levels[level].index -= width;
                }
                None
            }
            EntryFit::Split => Some(self.split(store, level, blocks)?),
        };
        let index = self.levels[level].index;
        self.edit_node(store, level, |node| node.insert(index, entry))?;
        // The keys of a new right half go up with its pointer. A split or a shift has brought the
        // keys of the left half in line with its entries: now they only grow.
        let moved = split.as_ref().is_some_and(|split| split.moved);
        if !moved && (K::OVERLAPPING || index == 1) {
            let high = match entry {
                Entry::Record(record) => K::high_key(record),
                Entry::Child(child) => child.high,
            };
            self.propagate_growth(store, level, high)?;
        }
        Ok(split)
    }

    /// How the block at `level` gets room for an entry at `index`.
    fn room<S: WriteTree<Kind = K>>(
        &self,
        store: &mut S,
        level: usize,
        index: usize,
    ) -> Result<EntryFit<K::Pointer>, S::Error> {
        let node = self.node(store, level);
        let (count, max) = (node.count(), node.max());
        drop(node);
        if count < max {
            return Ok(EntryFit::Enough);
        }
        if self.levels[level].buffer.is_none() {
            return Ok(EntryFit::PushDown);
        }
        // The slot of the new entry must not leave the block.
        for (side, allowed) in [(Side::Right, index < count), (Side::Left, index > 1)] {
            if !allowed {
                continue;
            }
            match self.sibling(store, level, side)? {
                Some(sibling) if sibling.count < max => return Ok(EntryFit::Shift(sibling)),
                _ => {}
            }
        }
        Ok(EntryFit::Split)
    }

    /// Takes the blocks that the insertion at the cursor will need; `None` if the store has not
    /// enough of them.
    fn reserve<S: WriteTree<Kind = K>>(
        &self,
        store: &mut S,
    ) -> Result<Option<Reserve<K::Pointer>>, S::Error> {
        let hints = self.plan(store)?;
        let mut blocks: Vec<(K::Pointer, BufferRef)> = Vec::with_capacity(hints.len());
        for hint in hints {
            let Some((pointer, buffer)) = store.allocate(hint)? else {
                for (pointer, buffer) in blocks.into_iter().rev() {
                    store.free(pointer, buffer)?;
                }
                return Ok(None);
            };
            self.check_new(store, pointer, &buffer, &blocks)?;
            blocks.push((pointer, buffer));
        }
        Ok(Some(blocks.into_iter()))
    }

    /// Which blocks the insertion will need, as the hints to allocate them with.
    fn plan<S: WriteTree<Kind = K>>(
        &self,
        store: &mut S,
    ) -> Result<SmallVec<[PointerOf<S>; 4]>, S::Error> {
        let (mut hints, height) = (SmallVec::new(), self.levels.len());
        let mut grows = false;
        for level in 0..height {
            // Above the leaf the new child goes behind the one it was split from.
            let index = self.levels[level].index + usize::from(level > 0);
            match self.room(store, level, index)? {
                EntryFit::Enough | EntryFit::Shift(_) => break,
                EntryFit::Split => hints.push(self.levels[level].pointer),
                EntryFit::PushDown => hints.push(self.node(store, level).pointer(1)),
            }
            if level + 1 == height {
                grows = true;
                if let Root::Block { pointer, .. } = store.root() {
                    hints.push(pointer);
                }
            }
        }
        let max = u64::from(store.geometry().max_height);
        let legal = !grows || (height as u64) < max;
        FieldDefect::unless(legal, "height", height as u64 + 1, Rule::AtMost(max))
            .map_err(|defect| self.fault(store, height - 1, defect))?;
        Ok(hints)
    }

    /// Checks that a block just taken is not part of the path or taken already, which happens when
    /// a corrupt volume counts a used block as free.
    pub(super) fn check_new<S: ReadTree<Kind = K>>(
        &self,
        store: &S,
        pointer: K::Pointer,
        buffer: &BufferRef,
        others: &[(K::Pointer, BufferRef)],
    ) -> Result<(), S::Error> {
        let geometry = store.geometry();
        let known = self.levels.iter().any(|level| level.pointer == pointer)
            || others.iter().any(|(other, _)| *other == pointer);
        let sized = buffer.read().len() == geometry.block_size;
        if store.contains(pointer) && sized && !known {
            return Ok(());
        }
        let found = pointer.number();
        let rule = Rule::Text("a free block");
        Err(self.fault(store, 0, FieldDefect { field: "allocated block", found, rule }))
    }
}

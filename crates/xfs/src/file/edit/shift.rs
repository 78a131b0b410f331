//! Ranges taken out of a file or put into it; the data behind them moves.
//!
//! Extents move in an order in which they never meet
//! (docs/algorithms/file-mapping.md#truncation-and-shifts), all in one transaction if a checkpoint
//! of the journal has room for it, which it nearly always has: a crash leaves the file as it was or
//! as it becomes. If they are too many, they move one at a time as a kernel's always do, and a
//! crash may leave the same as with a kernel. A range that is taken out reads as zeros, as far as
//! it is freed already, and the first extents behind it have moved. A range that is put in has made
//! the file larger, and the last extents of the file have moved.

use super::{FileEdit, Step};
use crate::bmap;
use crate::error::Error;
use crate::format::{Extent, InodeFlags2};
use crate::inode::ForkKind;
use crate::refcount;
use crate::units::{AgNumber, FileBlock};
use std::ops::Range;

/// Blocks of the trees of a group that one extent may change which moves or goes.
const BLOCKS_PER_EXTENT: usize = 8;

/// The space that a log item takes in the journal besides a block.
const ITEM_OVERHEAD: usize = 256;

/// The limits of one transaction.
struct StepLimits {
    /// Bytes of the journal.
    bytes: usize,
    /// Extents that move or go.
    extents: usize,
}

impl<'a> FileEdit<'a> {
    /// Takes a range of whole blocks out of the file: the data behind it moves to its place.
    ///
    /// # Errors
    /// The range is empty, not of whole blocks, or reaches the end of the file; as for
    /// [`punch`](Self::punch).
    pub(in crate::file) fn collapse(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.check_range(&range)?;
        self.check_whole_blocks(&range)?;
        if range.end >= self.size() {
            let what = "the range reaches the end of the file; truncate it instead";
            return Err(self.invalid(&range, what));
        }
        let blocks = self.blocks_inside(&range);
        let distance = blocks.end.0 - blocks.start.0;
        self.trim()?;
        self.start();
        // Until they are gone; then others come to lie there.
        let mut gone = self.parts(blocks.clone())?;
        let mut at = blocks.end;
        loop {
            let mut moved = self.parts(at..FileBlock(u64::MAX))?;
            let room = self.room(gone.len() + moved.len())?;
            if room.extents < gone.len() + moved.len() && !gone.is_empty() {
                self.unmap(blocks.clone())?;
                gone.clear();
                continue;
            }
            let is_last = moved.len() <= room.extents;
            moved.truncate(room.extents);
            let mut step = self.begin_with(&room, &[&gone[..], &moved[..]].concat())?;
            self.unmap_at_once(&mut step, &gone)?;
            for extent in &moved {
                self.shift(&mut step, *extent, FileBlock(extent.offset.0 - distance))?;
            }
            if is_last {
                step.inode.core.size -= range.end - range.start;
                return self.commit(step);
            }
            self.commit(step)?;
            gone.clear();
            at = moved.last().map_or(at, Extent::end);
        }
    }

    /// Puts a hole of whole blocks into the file: data there moves behind it.
    ///
    /// # Errors
    /// The range is empty, not of whole blocks, or starts behind the file; the file would be larger
    /// than the format allows; as for [`punch`](Self::punch).
    pub(in crate::file) fn insert(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.check_range(&range)?;
        self.check_whole_blocks(&range)?;
        if range.start >= self.size() {
            let what = "the range starts behind the file; truncate it to a larger size instead";
            return Err(self.invalid(&range, what));
        }
        let size = self.check_end(self.size(), range.end - range.start)?;
        let blocks = self.blocks_inside(&range);
        let distance = blocks.end.0 - blocks.start.0;
        self.trim()?;
        let end = self.extents()?.end();
        if end.0.saturating_add(distance) > FileBlock::MAX.0 {
            let what = "what is mapped behind the file has no room to move";
            return Err(Error::TooLarge(self.about(&range, what)));
        }
        self.start();
        self.zero_behind_end(size)?;
        let mut below = FileBlock(u64::MAX);
        loop {
            let mut moved = self.parts(blocks.start..below)?;
            let room = self.room(moved.len())?;
            let is_last = moved.len() <= room.extents;
            moved.reverse();
            moved.truncate(room.extents);
            let mut step = self.begin_with(&room, &moved)?;
            if let Some(first) = moved.last().filter(|_| is_last) {
                // The range may start in the middle of an extent.
                let places = [first.offset, first.end(), FileBlock(first.offset.0 + distance)];
                let (trans, inode) = (&mut step.trans, &step.inode);
                bmap::prepare(trans, inode, ForkKind::Data, &[first.start], &places, 1)?;
            }
            step.inode.core.size = size;
            for extent in &moved {
                self.shift(&mut step, *extent, FileBlock(extent.offset.0 + distance))?;
            }
            self.commit(step)?;
            below = moved.last().map_or(below, |extent| extent.offset);
            if is_last {
                return Ok(());
            }
        }
    }

    /// Moves an extent. Until that is durable its blocks are not overwritten: a crash would bring
    /// back their old place in the file, with data written for the new one.
    fn shift(&self, step: &mut Step<'_>, extent: Extent, to: FileBlock) -> Result<(), Error> {
        self.protect(&extent);
        bmap::shift(&mut step.trans, &mut step.inode, extent, to)
    }

    /// Unmaps all that is in the range of these extents, whose groups are locked.
    fn unmap_at_once(&self, step: &mut Step<'_>, gone: &[Extent]) -> Result<(), Error> {
        let (Some(first), Some(last)) = (gone.first(), gone.last()) else { return Ok(()) };
        let (trans, inode) = (&mut step.trans, &mut step.inode);
        if inode.core.flags2.contains(InodeFlags2::REFLINK) {
            for extent in gone {
                let (ag, _) = self.geometry().split_block(extent.start);
                trans.in_group(ag, |trans, group| refcount::check_room_for_all(trans, group))?;
            }
        }
        while bmap::remove(trans, inode, ForkKind::Data, first.offset, last.end())? {}
        Ok(())
    }

    /// The extents in a range, ascending; the first and the last one cut to it.
    fn parts(&self, range: Range<FileBlock>) -> Result<Vec<Extent>, Error> {
        let extents = self.extents()?;
        let behind = extents.as_slice().iter().skip(extents.position(range.start));
        Ok(behind.map_while(|extent| extent.part(range.start, range.end)).collect())
    }

    /// How many of `extents` extents of the file one transaction may move or free, and what that
    /// takes of the journal. A block counts once, however often it changes: so what takes part of
    /// a tree is bounded by the tree, and by what may be added to it.
    fn room(&self, extents: usize) -> Result<StepLimits, Error> {
        let geometry = self.geometry();
        let state = self.inode.read();
        let list = bmap::extents(self.volume, &state, ForkKind::Data)?;
        let starts = list.as_slice().iter().map(|extent| geometry.split_block(extent.start).0);
        let mut groups: Vec<AgNumber> = starts.collect();
        groups.sort_unstable();
        groups.dedup();
        // Twice, since other transactions may let them grow until this one has begun.
        let mut trees = 0;
        for ag in groups {
            if let Some(mut guard) = self.volume.lock_group(ag, true)? {
                let agf = &guard.state().agf;
                let blocks = agf.tree_blocks + agf.rmap_blocks + agf.refcount_blocks;
                trees += 2 * blocks as usize + 2 * BLOCKS_PER_EXTENT;
            }
        }
        // Leaves of the file's own tree are half full at least.
        let own = |count: usize| 8 + count * Extent::LEN * 4 / geometry.block_size();
        let is_shared = state.core.flags2.contains(InodeFlags2::REFLINK);
        let bytes = |count: usize| {
            let each = if is_shared { trees } else { trees.min(count * BLOCKS_PER_EXTENT) };
            let blocks = each + own(list.len());
            self.volume.longest_log_bytes() + blocks * (geometry.block_size() + ITEM_OVERHEAD)
        };
        let limit = self.volume.log_limit();
        if bytes(extents) <= limit {
            return Ok(StepLimits { bytes: bytes(extents), extents });
        }
        Ok(StepLimits { bytes: self.volume.longest_log_bytes(), extents: 1 })
    }

    /// Begins a step that changes these extents, with the locks of all their groups.
    fn begin_with(&self, room: &StepLimits, extents: &[Extent]) -> Result<Step<'a>, Error> {
        let frozen = self.locks.freeze_blocks();
        let mut step = self.join(self.transaction(room.bytes)?, Some(frozen))?;
        let split = |extent: &Extent| self.geometry().split_block(extent.start).0;
        let mut groups: Vec<AgNumber> = extents.iter().map(split).collect();
        bmap::tree_groups(self.volume, &step.inode, ForkKind::Data, &mut groups)?;
        step.trans.lock_groups(groups)?;
        Ok(step)
    }

    fn check_whole_blocks(&self, range: &Range<u64>) -> Result<(), Error> {
        let block_size = self.geometry().block_size() as u64;
        if range.start.is_multiple_of(block_size) && range.end.is_multiple_of(block_size) {
            return Ok(());
        }
        let what = format!("both ends must be multiples of the block size, {block_size}");
        Err(self.invalid(range, &what))
    }

    pub(super) fn invalid(&self, range: &Range<u64>, what: &str) -> Error {
        Error::Invalid(self.about(range, what))
    }

    pub(super) fn about(&self, range: &Range<u64>, what: &str) -> String {
        let (number, start, end) = (self.number, range.start, range.end);
        format!("bytes {start}..{end} of inode {number}: {what}")
    }
}

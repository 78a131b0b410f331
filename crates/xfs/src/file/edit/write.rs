//! Writing at any place of a file.

use super::data::{Old, Source};
use super::{FileEdit, Step, give_up};
use crate::bmap::{self, AllocationWindow};
use crate::error::Error;
use crate::file::MAX_FILE_SIZE;
use crate::format::{Extent, InodeFlags, InodeFlags2};
use crate::group_tree;
use crate::inode::{ForkKind, InodeState};
use crate::units::FileBlock;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::sync::Arc;

/// Most bytes that are copied for the sake of a hint.
const COPY_MAX: u32 = 4 << 20;

/// Most zeros of one write.
const ZEROES_MAX: u64 = 4 << 20;

/// The state of the blocks at a place of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockState {
    /// Not mapped, up to this block.
    Hole(FileBlock),
    /// Mapped and never written.
    Unwritten(Extent),
    /// Written, and this file's alone.
    Own(Extent),
    /// Written, and another file's as well.
    Shared(Extent),
}

impl FileEdit<'_> {
    /// Writes the bytes of `memory` in `range` at `offset`. The file grows if it ends before.
    ///
    /// # Errors
    /// The file would be larger than the format allows; no space; a damaged structure; the device
    /// failed.
    pub(in crate::file) fn write(
        &mut self,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
    ) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        let end = self.check_end(offset, range.len() as u64)?;
        self.start();
        self.zero_behind_end(offset)?;
        self.put(offset..end, Source::Memory { memory, first: range.start, offset })?;
        self.finish(end)
    }

    /// The byte `len` behind `offset`, where the file may end.
    pub(super) fn check_end(&self, offset: u64, len: u64) -> Result<u64, Error> {
        let end = offset.checked_add(len).filter(|end| *end <= MAX_FILE_SIZE);
        end.ok_or_else(|| {
            let number = self.number;
            Error::TooLarge(format!(
                "inode {number}: {len} bytes at {offset}: the limit of a file is 2^63 - 1"
            ))
        })
    }

    /// Zeroes bytes stored between the end of the file and `offset`: it becomes visible when the
    /// file grows beyond it.
    pub(super) fn zero_behind_end(&mut self, offset: u64) -> Result<(), Error> {
        let size = self.size();
        if size < offset { self.put(size..offset, Source::Zeroes) } else { Ok(()) }
    }

    /// Writes a range piece by piece.
    pub(super) fn put(&mut self, bytes: Range<u64>, source: Source<'_>) -> Result<(), Error> {
        let mut left = Ok(bytes);
        while let Ok(bytes) = &left
            && !bytes.is_empty()
        {
            left = self.put_front(bytes.clone(), source);
        }
        // Also after an error: blocks may have been overwritten.
        self.before_next_checkpoint()?;
        left.map(drop)
    }

    /// Writes the front of a range; returns the rest.
    fn put_front(
        &mut self,
        mut bytes: Range<u64>,
        source: Source<'_>,
    ) -> Result<Range<u64>, Error> {
        let end = match source {
            Source::Zeroes => {
                bytes.start = self.next_written(&bytes)?;
                bytes.end.min(bytes.start + ZEROES_MAX)
            }
            Source::Memory { .. } | Source::Run(_) => bytes.end,
        };
        if bytes.start < end {
            let piece = bytes.start..end;
            bytes.start = self.when_free(|edit| edit.put_piece(piece.clone(), source))?;
        }
        Ok(bytes)
    }

    /// The first byte of a range that does not read as a zero anyway; its end if there is none.
    fn next_written(&self, bytes: &Range<u64>) -> Result<u64, Error> {
        let mut blocks = self.blocks_over(bytes);
        let extents = self.extents()?;
        while let Some(extent) = extents.first_in(blocks.start, blocks.end) {
            if !extent.unwritten {
                return Ok(bytes.start.max(self.byte(extent.offset)));
            }
            blocks.start = extent.end();
        }
        Ok(bytes.end)
    }

    /// Writes the front of a range, as far as the file is the same there; returns where that ends.
    fn put_piece(&mut self, bytes: Range<u64>, source: Source<'_>) -> Result<u64, Error> {
        let blocks = self.blocks_over(&bytes);
        let done = match self.place(blocks.clone())? {
            BlockState::Hole(end) if self.has_size_hint() => {
                // A window around it, unwritten; the next turn writes to that.
                self.allocate_unwritten(blocks.start..end, source, InodeFlags::empty())?;
                return Ok(bytes.start);
            }
            BlockState::Own(extent) | BlockState::Unwritten(extent)
                if self.were_others(&extent, &bytes) =>
            {
                // A crash would bring back their old mapping: their data must be the old data.
                self.volume.sync()?;
                return Ok(bytes.start);
            }
            BlockState::Hole(end) => self.fill(&bytes, blocks.start..end, source)?,
            BlockState::Unwritten(extent) => self.write_first(&bytes, extent, source)?,
            BlockState::Own(extent) => {
                let bytes = self.within(&bytes, &extent);
                let old = Old { extent: &extent, size: self.size() };
                let whole = rounded(&bytes, self.geometry().sector_size());
                self.send(&extent, bytes, whole, source, Some(old))?;
                extent.end()
            }
            BlockState::Shared(extent) => self.copy_on_write(&bytes, extent, source)?,
        };
        Ok(self.byte(done).min(bytes.end))
    }

    /// The state of the front of a range of blocks.
    pub(super) fn place(&self, blocks: Range<FileBlock>) -> Result<BlockState, Error> {
        let Some(extent) = self.extents()?.first_in(blocks.start, blocks.end) else {
            return Ok(BlockState::Hole(blocks.end));
        };
        if extent.offset > blocks.start {
            return Ok(BlockState::Hole(extent.offset));
        }
        if extent.unwritten {
            return Ok(BlockState::Unwritten(extent));
        }
        if !self.inode.read().core.flags2.contains(InodeFlags2::REFLINK) {
            return Ok(BlockState::Own(extent));
        }
        let (group, start) = self.geometry().split_block(extent.start);
        Ok(match group_tree::first_shared(self.volume, group, start, extent.len)? {
            None => BlockState::Own(extent),
            Some(shared) if shared.start == start => {
                BlockState::Shared(Extent { len: shared.len, ..extent })
            }
            Some(shared) => BlockState::Own(Extent { len: shared.start.0 - start.0, ..extent }),
        })
    }

    /// Whether a crash would bring back another owner of the blocks of `extent` that hold `bytes`, or
    /// another place of them.
    fn were_others(&self, extent: &Extent, bytes: &Range<u64>) -> bool {
        let blocks = self.blocks_over(bytes);
        let part = extent.part(blocks.start, blocks.end).filter(|_| self.volume.is_live());
        part.is_some_and(|part| {
            let (group, start) = self.geometry().split_block(part.start);
            self.volume.group(group).busy.has_remapped(start, part.len)
        })
    }

    /// The part of a range of bytes that an extent holds.
    fn within(&self, bytes: &Range<u64>, extent: &Extent) -> Range<u64> {
        bytes.start.max(self.byte(extent.offset))..bytes.end.min(self.byte(extent.end()))
    }

    fn has_size_hint(&self) -> bool {
        self.inode.read().core.extent_size_hint() > 0
    }

    /// The blocks to take for a hole: more than it has, where the file is appended to and may be
    /// again.
    fn with_growth(
        &self,
        hole: &Range<FileBlock>,
        source: Source<'_>,
    ) -> Result<Range<FileBlock>, Error> {
        let state = self.inode.read();
        let end = FileBlock(self.geometry().blocks_for(state.core.size));
        let grows = state.memory.growth.is_open && hole.end == end;
        if !grows || !matches!(source, Source::Run(_)) {
            return Ok(hole.clone());
        }
        let extents = bmap::extents(self.volume, &state, ForkKind::Data)?;
        let size = self.size_before(&state, hole, source);
        Ok(hole.start..bmap::ahead(self.volume, extents, hole, size))
    }

    /// Size that the file had when the hole was reached.
    pub(super) fn size_before(
        &self,
        state: &InodeState,
        hole: &Range<FileBlock>,
        source: Source<'_>,
    ) -> u64 {
        let Some(dirty) = &state.memory.dirty else { return state.core.size };
        let Source::Run(run) = source else { return dirty.stored_size };
        dirty.stored_size.max(run.size_before(hole.start.0))
    }

    /// Writes into a hole: to new blocks, which are then mapped.
    fn fill(
        &mut self,
        bytes: &Range<u64>,
        hole: Range<FileBlock>,
        source: Source<'_>,
    ) -> Result<FileBlock, Error> {
        let kind = ForkKind::Data;
        let window = self.with_growth(&hole, source)?;
        let mut step = self.begin()?;
        self.adopt_margin(&mut step, source);
        let places = [hole.start, window.end];
        let records = 1 + u64::from(window.end > hole.end);
        bmap::prepare(&mut step.trans, &step.inode, kind, &[], &places, records)?;
        let room = AllocationWindow::only(window.clone());
        let (mut step, taken) = self.take_space(step, &hole, &room, source)?;
        let ahead = taken.part(hole.end, window.end);
        let extent = Extent { len: taken.len - ahead.map_or(0, |ahead| ahead.len), ..taken };
        let bytes = self.within(bytes, &extent);
        let whole = rounded(&bytes, self.geometry().block_size());
        self.send(&extent, bytes.clone(), whole, source, None)?;
        self.before(&mut step)?;
        let mut new: SmallVec<[Extent; 2]> = smallvec![extent];
        new.extend(ahead.map(|ahead| Extent { unwritten: true, ..ahead }));
        bmap::add(&mut step.trans, &mut step.inode, kind, &new)?;
        step.inode.memory.growth.has_space |= ahead.is_some();
        self.commit_data(step, bytes.end, source)?;
        Ok(extent.end())
    }

    /// Writes to blocks that were preallocated: their content is not visible until they count as
    /// written.
    fn write_first(
        &mut self,
        bytes: &Range<u64>,
        extent: Extent,
        source: Source<'_>,
    ) -> Result<FileBlock, Error> {
        let bytes = self.within(bytes, &extent);
        let whole = rounded(&bytes, self.geometry().block_size());
        self.send(&extent, bytes.clone(), whole, source, None)?;
        let mut step = self.begin()?;
        self.adopt_margin(&mut step, source);
        self.before(&mut step)?;
        let (starts, places) = ([extent.start], [extent.offset, extent.end()]);
        bmap::prepare(&mut step.trans, &step.inode, ForkKind::Data, &starts, &places, 2)?;
        bmap::convert(&mut step.trans, &mut step.inode, extent)?;
        self.commit_data(step, bytes.end, source)?;
        Ok(extent.end())
    }

    /// Writes to new blocks, with what the shared ones hold around the write, and maps them in
    /// their place.
    fn copy_on_write(
        &mut self,
        bytes: &Range<u64>,
        old: Extent,
        source: Source<'_>,
    ) -> Result<FileBlock, Error> {
        let wide = self.with_hint(old)?;
        let (kind, mut step) = (ForkKind::Data, self.begin_freeing()?);
        self.adopt_margin(&mut step, source);
        let (starts, places) = ([wide.start], [wide.offset, wide.end()]);
        bmap::prepare(&mut step.trans, &step.inode, kind, &starts, &places, 2)?;
        let mut whole = bmap::bounded(&mut step.trans, &step.inode, kind, wide)?;
        if whole.end() < old.end() {
            whole = bmap::bounded(&mut step.trans, &step.inode, kind, old)?;
        }
        let wanted = old.offset..old.end().min(whole.end());
        let room = AllocationWindow { wanted: wanted.clone(), window: whole.offset..whole.end() };
        let (mut step, new) = self.take_space(step, &wanted, &room, source)?;
        // It lies in the window.
        let old = whole.part(new.offset, new.end()).unwrap_or(whole);
        let bytes = self.within(bytes, &new);
        let before = Old { extent: &old, size: step.inode.core.size };
        let whole = self.byte(new.offset)..self.byte(new.end());
        self.send(&new, bytes.clone(), whole, source, Some(before))?;
        self.before(&mut step)?;
        bmap::replace(&mut step.trans, &mut step.inode, old, new)?;
        self.commit_data(step, bytes.end, source)?;
        Ok(new.end())
    }

    /// Shared blocks around these as well, up to the bounds of the window of the file's hint for
    /// copies: so that a file that is changed here and there does not become one of small pieces.
    fn with_hint(&self, old: Extent) -> Result<Extent, Error> {
        let state = self.inode.read();
        let hint = u64::from(state.core.copy_size_hint().min(self.most_copied()));
        if hint <= 1 {
            return Ok(old);
        }
        let extents = bmap::extents(self.volume, &state, ForkKind::Data)?;
        let from = old.offset.0 / hint * hint;
        let to = old.end().0.next_multiple_of(hint);
        let Some(around) = extents
            .at_or_after(old.offset)
            .and_then(|record| record.part(FileBlock(from), FileBlock(to)))
        else {
            return Ok(old);
        };
        // Parts that differ in how many have them are one here.
        let (group, start) = self.geometry().split_block(around.start);
        let mut run = (0, 0);
        let inside = (old.offset.0 - around.offset.0) as u32;
        group_tree::shared_extents(self.volume, group, start, around.len, |part| {
            let from = part.start.0 - start.0;
            if run.1 <= inside {
                run = (if run.1 == from { run.0 } else { from }, from + part.len);
            } else if run.1 == from {
                run.1 += part.len;
            }
        })?;
        let block = |at: u32| FileBlock(around.offset.0 + u64::from(at));
        let whole = around.part(block(run.0), block(run.1));
        let covers = |whole: &Extent| whole.offset <= old.offset && whole.end() >= old.end();
        Ok(whole.filter(covers).unwrap_or(old))
    }

    /// Blocks that are copied for a hint at most.
    fn most_copied(&self) -> u32 {
        (COPY_MAX >> self.geometry().block_log).max(1)
    }

    /// Commits a step that made data visible up to the byte `end`.
    fn commit_data(
        &mut self,
        mut step: Step<'_>,
        end: u64,
        source: Source<'_>,
    ) -> Result<(), Error> {
        let core = &mut step.inode.core;
        match source {
            Source::Memory { .. } => core.size = core.size.max(end),
            Source::Run(_) => step.inode.grow_stored_size(end),
            Source::Zeroes => {}
        }
        self.commit(step)
    }

    /// Takes over the blocks reserved for the map of the file when its data became dirty.
    pub(super) fn adopt_margin(&self, step: &mut Step<'_>, source: Source<'_>) {
        if matches!(source, Source::Run(_)) {
            let margin = u64::from(self.volume.heights().bmap_data);
            step.trans.adopt(step.inode.take_reserved(margin));
        }
    }

    /// Takes space for up to the blocks `needed`, or the room around them if that is to be had;
    /// nothing of the file is changed by that. Space for dirty data was set aside.
    pub(super) fn take_space<'t>(
        &self,
        mut step: Step<'t>,
        needed: &Range<FileBlock>,
        room: &AllocationWindow,
        source: Source<'_>,
    ) -> Result<(Step<'t>, Extent), Error> {
        let blocks = |range: &Range<FileBlock>| range.end.0 - range.start.0;
        let len = blocks(needed);
        let is_ours = matches!(source, Source::Run(_)) && step.inode.reserved_ahead() >= len;
        // As much as there is; the next step finds that there is no more.
        let len = if is_ours { len } else { len.min(self.volume.available_blocks().max(1)) };
        if !is_ours {
            step.trans.reserve(len)?;
        }
        let more = blocks(&room.window) - blocks(needed);
        let has_more = len == blocks(needed) && step.trans.reserve(more).is_ok();
        let least = AllocationWindow::only(needed.start..FileBlock(needed.start.0 + len));
        let Step { trans, inode, .. } = &mut step;
        match bmap::find_space(trans, inode, if has_more { room } else { &least }) {
            Ok(extent) => {
                if is_ours {
                    trans.adopt(inode.take_reserved(len.min(extent.len.into())));
                    trans.claim(extent.len.into())?;
                }
                Ok((step, extent))
            }
            Err(error) => Err(give_up(step, error)),
        }
    }
}

/// A range of bytes in whole units of `unit` bytes.
fn rounded(bytes: &Range<u64>, unit: usize) -> Range<u64> {
    let unit = unit as u64;
    bytes.start / unit * unit..bytes.end.next_multiple_of(unit)
}

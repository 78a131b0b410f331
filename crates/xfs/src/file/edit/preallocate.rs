//! Space without data: preallocated, punched out, or zeroed.

use super::FileEdit;
use super::data::Source;
use super::write::BlockState;
use crate::bmap::{self, AllocationWindow};
use crate::error::Error;
use crate::format::InodeFlags;
use crate::inode::ForkKind;
use crate::units::FileBlock;
use std::ops::Range;

/// What becomes of the size of a file whose preallocated range ends behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// It stays.
    Keep,
    /// The file ends where the range does.
    Grow,
}

impl FileEdit<'_> {
    /// Gives every block of a range of bytes a place on the device. Bytes that were not stored read
    /// as zeros as before.
    ///
    /// # Errors
    /// The range is empty or ends behind what the format allows; no space, then the file is as it
    /// was; a damaged structure; the device failed.
    pub(in crate::file) fn preallocate(
        &mut self,
        range: Range<u64>,
        size: Size,
    ) -> Result<(), Error> {
        self.check_range(&range)?;
        self.start();
        self.allocate_holes(self.blocks_over(&range))?;
        self.grow_for(&range, size)
    }

    /// Frees the blocks of a range of bytes, and zeroes the rest of it in blocks at its ends. The
    /// size stays.
    ///
    /// # Errors
    /// The range is empty; no space to split an extent or to copy a shared block; a damaged
    /// structure; the device failed.
    pub(in crate::file) fn punch(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.check_range(&range)?;
        self.start();
        self.zero_ends(&range)?;
        self.unmap(self.blocks_inside(&range))?;
        self.finish(0)
    }

    /// Makes a range of bytes read as zeros, with a place on the device for every block of it.
    ///
    /// # Errors
    /// As for [`preallocate`](Self::preallocate) and [`punch`](Self::punch).
    pub(in crate::file) fn zero(&mut self, range: Range<u64>, size: Size) -> Result<(), Error> {
        self.check_range(&range)?;
        self.start();
        self.zero_ends(&range)?;
        self.unwrite(self.blocks_inside(&range))?;
        self.allocate_holes(self.blocks_over(&range))?;
        self.grow_for(&range, size)
    }

    pub(super) fn check_range(&self, range: &Range<u64>) -> Result<(), Error> {
        if range.is_empty() {
            let (start, end) = (range.start, range.end);
            return Err(Error::Invalid(format!("the range {start}..{end} is empty")));
        }
        self.check_end(range.start, range.end - range.start).map(drop)
    }

    fn grow_for(&mut self, range: &Range<u64>, size: Size) -> Result<(), Error> {
        if size == Size::Keep {
            return self.finish(0);
        }
        self.zero_behind_end(range.end)?;
        self.finish(range.end)
    }

    /// Zeroes the stored parts of blocks at both ends of a range.
    fn zero_ends(&mut self, range: &Range<u64>) -> Result<(), Error> {
        let inside = self.blocks_inside(range);
        if inside.start > inside.end {
            // The range lies in one block.
            return self.put(range.clone(), Source::Zeroes);
        }
        self.put(range.start..self.byte(inside.start), Source::Zeroes)?;
        self.put(self.byte(inside.end)..range.end, Source::Zeroes)
    }

    /// Maps new unwritten blocks wherever nothing is mapped, or nowhere.
    fn allocate_holes(&mut self, blocks: Range<FileBlock>) -> Result<(), Error> {
        let was_preallocated = self.inode.read().core.flags.contains(InodeFlags::PREALLOC);
        let mut taken = Vec::new();
        let Err(error) = self.take_holes(blocks, &mut taken) else { return Ok(()) };
        // The first error counts; a volume that cannot free blocks is read-only by then.
        let undone = taken.iter().try_for_each(|taken| self.unmap(taken.clone()));
        if undone.is_ok() && !was_preallocated && !taken.is_empty() {
            let mut step = self.begin()?;
            step.inode.core.flags.remove(InodeFlags::PREALLOC);
            self.commit(step)?;
        }
        Err(error)
    }

    /// Maps new unwritten blocks wherever nothing is mapped, and says where.
    fn take_holes(
        &mut self,
        blocks: Range<FileBlock>,
        taken: &mut Vec<Range<FileBlock>>,
    ) -> Result<(), Error> {
        let mut at = blocks.start;
        while at < blocks.end {
            let next = self.extents()?.first_in(at, blocks.end);
            at = match next {
                Some(mapped) if mapped.offset <= at => mapped.end(),
                other => {
                    let hole = at..other.map_or(blocks.end, |mapped| mapped.offset);
                    let (source, flags) = (Source::Zeroes, InodeFlags::PREALLOC);
                    let new = self
                        .when_free(|edit| edit.allocate_unwritten(hole.clone(), source, flags))?;
                    match taken.last_mut().filter(|last| last.end == new.start) {
                        Some(last) => last.end = new.end,
                        None => taken.push(new.clone()),
                    }
                    new.end
                }
            };
        }
        Ok(())
    }

    /// Maps new unwritten blocks at the front of a hole, and around that what the file's hint asks
    /// for; returns which they are. The file gets the flags.
    pub(super) fn allocate_unwritten(
        &mut self,
        hole: Range<FileBlock>,
        source: Source<'_>,
        flags: InodeFlags,
    ) -> Result<Range<FileBlock>, Error> {
        let kind = ForkKind::Data;
        let room = self.with_window(&hole, source)?;
        let mut step = self.begin()?;
        self.adopt_margin(&mut step, source);
        let places = [room.window.start, room.window.end];
        bmap::prepare(&mut step.trans, &step.inode, kind, &[], &places, 1)?;
        let (mut step, mut extent) = self.take_space(step, &hole, &room, source)?;
        extent.unwritten = true;
        bmap::add(&mut step.trans, &mut step.inode, kind, &[extent])?;
        step.inode.core.flags |= flags;
        step.inode.memory.growth.has_space |= self.byte(extent.end()) > step.inode.core.size;
        self.commit(step)?;
        Ok(extent.offset..extent.end())
    }

    /// The room to take for a hole in a file with an extent size hint. What a write at the end of a
    /// file wants goes on to the end of a window, and of a stripe unit if the file is as large.
    fn with_window(
        &self,
        hole: &Range<FileBlock>,
        source: Source<'_>,
    ) -> Result<AllocationWindow, Error> {
        let state = self.inode.read();
        let hint = state.core.extent_size_hint();
        if hint == 0 {
            return Ok(AllocationWindow::only(hole.clone()));
        }
        let extents = bmap::extents(self.volume, &state, ForkKind::Data)?;
        let (geometry, mut end) = (self.geometry(), hole.end);
        let size = self.size_before(&state, hole, source);
        let grows = !matches!(source, Source::Zeroes) && self.byte(hole.end) > size;
        if grows && extents.at_or_after(hole.start).is_none() {
            let stripe = u64::from(geometry.stripe_unit);
            let is_striped = stripe > 0 && size >= stripe << geometry.block_log;
            let unit = if is_striped { stripe.next_multiple_of(hint.into()) } else { hint.into() };
            end = FileBlock(end.0.next_multiple_of(unit));
        }
        let wanted = hole.start..end;
        Ok(AllocationWindow { window: bmap::window(extents, &wanted, hint), wanted })
    }

    /// Frees blocks taken behind the end of the file for writes that did not come, as a kernel does
    /// when a file is closed. A file that was [preallocated](Self::preallocate), or may only be
    /// appended to, keeps it.
    ///
    /// # Errors
    /// A damaged structure; the device failed.
    pub(in crate::file) fn trim(&mut self) -> Result<(), Error> {
        let state = self.inode.read();
        let keeps = InodeFlags::PREALLOC | InodeFlags::APPEND;
        let (keeps, size) = (state.core.flags.intersects(keeps), state.core.size);
        drop(state);
        if keeps {
            return Ok(());
        }
        // Nothing visible changes, so the times stay, too.
        self.stamped = true;
        self.unmap(FileBlock(self.geometry().blocks_for(size))..FileBlock(u64::MAX))?;
        self.inode.write().memory.growth.has_space = false;
        Ok(())
    }

    /// Turns written blocks into unwritten ones; blocks that other files share are unmapped.
    fn unwrite(&mut self, blocks: Range<FileBlock>) -> Result<(), Error> {
        let mut at = blocks.start;
        while at < blocks.end {
            at = match self.place(at..blocks.end)? {
                BlockState::Hole(end) => end,
                BlockState::Unwritten(extent) => extent.end(),
                BlockState::Shared(extent) => {
                    self.unmap(extent.offset..extent.end())?;
                    extent.end()
                }
                BlockState::Own(own) => {
                    let mut step = self.begin()?;
                    let (starts, places) = ([own.start], [own.offset, own.end()]);
                    let kind = ForkKind::Data;
                    bmap::prepare(&mut step.trans, &step.inode, kind, &starts, &places, 2)?;
                    bmap::convert(&mut step.trans, &mut step.inode, own)?;
                    self.commit(step)?;
                    own.end()
                }
            };
        }
        Ok(())
    }
}

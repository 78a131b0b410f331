//! Space without data: preallocated, punched out, or zeroed.

use super::FileEdit;
use super::data::Source;
use super::write::Place;
use crate::bmap;
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
    /// Gives every block of a range of bytes a place on the device. What was not stored reads as
    /// zeros as before.
    ///
    /// # Errors
    /// The range is empty or ends behind what the format allows; no space, then a part of it may be
    /// allocated; a damaged structure; the device failed.
    pub fn preallocate(&mut self, range: Range<u64>, size: Size) -> Result<(), Error> {
        self.check_range(&range)?;
        self.start();
        self.allocate_holes(self.blocks_over(&range))?;
        self.grow_for(&range, size)
    }

    /// Frees the blocks of a range of bytes, and zeroes what is left of it in blocks at its ends.
    /// The size stays.
    ///
    /// # Errors
    /// The range is empty; no space to split an extent or to copy a shared block; a damaged
    /// structure; the device failed.
    pub fn punch(&mut self, range: Range<u64>) -> Result<(), Error> {
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
    pub fn zero(&mut self, range: Range<u64>, size: Size) -> Result<(), Error> {
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

    /// Zeroes what is stored in the parts of blocks at both ends of a range.
    fn zero_ends(&mut self, range: &Range<u64>) -> Result<(), Error> {
        let inside = self.blocks_inside(range);
        if inside.start > inside.end {
            // The range lies in one block.
            return self.put(range.clone(), Source::Zeroes);
        }
        self.put(range.start..self.byte(inside.start), Source::Zeroes)?;
        self.put(self.byte(inside.end)..range.end, Source::Zeroes)
    }

    /// Maps new unwritten blocks wherever nothing is mapped.
    fn allocate_holes(&mut self, blocks: Range<FileBlock>) -> Result<(), Error> {
        let mut at = blocks.start;
        while at < blocks.end {
            let next = self.extents()?.first_in(at, blocks.end);
            at = match next {
                Some(mapped) if mapped.offset == at => mapped.end(),
                Some(mapped) => self.retry(|edit| edit.allocate_hole(at..mapped.offset))?,
                None => self.retry(|edit| edit.allocate_hole(at..blocks.end))?,
            };
        }
        Ok(())
    }

    /// Maps new unwritten blocks at the front of a hole; returns where they end.
    fn allocate_hole(&mut self, hole: Range<FileBlock>) -> Result<FileBlock, Error> {
        let kind = ForkKind::Data;
        let mut step = self.begin()?;
        bmap::prepare(&mut step.trans, &step.inode, kind, &[], &[hole.start, hole.end], 1)?;
        let (mut step, mut extent) =
            self.take_space(step, hole.start, hole.end.0 - hole.start.0, Source::Zeroes)?;
        extent.unwritten = true;
        bmap::add(&mut step.trans, &mut step.inode, kind, extent)?;
        step.inode.core.flags |= InodeFlags::PREALLOC;
        self.commit(step)?;
        Ok(extent.end())
    }

    /// Turns written blocks into unwritten ones; those that other files have are unmapped.
    fn unwrite(&mut self, blocks: Range<FileBlock>) -> Result<(), Error> {
        let mut at = blocks.start;
        while at < blocks.end {
            at = match self.place(at..blocks.end)? {
                Place::Hole(end) => end,
                Place::Unwritten(extent) => extent.end(),
                Place::Shared(extent) => {
                    self.unmap(extent.offset..extent.end())?;
                    extent.end()
                }
                Place::Own(own) => {
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

//! Ranges taken out of a file or put into it, with what follows moved.
//!
//! Extents move one by one, in an order in which they never meet (algorithms reference, section
//! 5.8). After a crash in between, a part of the file has moved.

use super::FileEdit;
use crate::bmap;
use crate::error::Error;
use crate::format::Extent;
use crate::inode::ForkKind;
use crate::units::FileBlock;
use std::ops::Range;

impl FileEdit<'_> {
    /// Takes a range of whole blocks out of the file: what follows moves to its place.
    ///
    /// # Errors
    /// The range is empty, not of whole blocks, or reaches the end of the file; as for
    /// [`punch`](Self::punch).
    pub fn collapse(&mut self, range: Range<u64>) -> Result<(), Error> {
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
        self.unmap(blocks.clone())?;
        let mut at = blocks.end;
        loop {
            let next = self.extents()?.first_in(at, FileBlock(u64::MAX));
            let Some(extent) = next else { break };
            at = extent.end();
            self.shift_extent(extent, FileBlock(extent.offset.0 - distance))?;
        }
        let mut step = self.begin()?;
        step.inode.core.size -= range.end - range.start;
        self.commit(step)
    }

    /// Puts a hole of whole blocks into the file: what is there moves behind it.
    ///
    /// # Errors
    /// The range is empty, not of whole blocks, or starts behind the file; the file would be larger
    /// than the format allows; as for [`punch`](Self::punch).
    pub fn insert(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.check_range(&range)?;
        self.check_whole_blocks(&range)?;
        if range.start >= self.size() {
            let what = "the range starts behind the file; truncate it to a larger size instead";
            return Err(self.invalid(&range, what));
        }
        let size = self.check_end(self.size(), range.end - range.start)?;
        let blocks = self.blocks_inside(&range);
        let distance = blocks.end.0 - blocks.start.0;
        let end = self.extents()?.end();
        if end.0.saturating_add(distance) > FileBlock::MAX.0 {
            return Err(self.invalid(&range, "what is mapped behind the file has no room to move"));
        }
        self.start();
        self.zero_behind_end(size)?;
        let mut step = self.begin()?;
        step.inode.core.size = size;
        self.commit(step)?;
        let mut below = FileBlock(u64::MAX);
        loop {
            let last = self.extents()?.last_in(blocks.start, below);
            let Some((_, extent)) = last else { return Ok(()) };
            below = extent.offset;
            self.shift_extent(extent, FileBlock(extent.offset.0 + distance))?;
        }
    }

    fn shift_extent(&mut self, extent: Extent, to: FileBlock) -> Result<(), Error> {
        let mut step = self.begin()?;
        let end = FileBlock(to.0 + u64::from(extent.len));
        let (starts, places) = ([extent.start], [extent.offset, to, end]);
        bmap::prepare(&mut step.trans, &step.inode, ForkKind::Data, &starts, &places, 1)?;
        bmap::shift(&mut step.trans, &mut step.inode, extent, to)?;
        self.commit(step)
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
        let (number, start, end) = (self.number, range.start, range.end);
        Error::Invalid(format!("bytes {start}..{end} of inode {number}: {what}"))
    }
}

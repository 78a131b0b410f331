//! Blocks shared between files.
//!
//! The target maps the blocks of the source; both carry the reflink flag from before the first
//! block is shared. A piece that the target had mapped is replaced in one transaction.

use super::FileEdit;
use crate::bmap;
use crate::error::Error;
use crate::format::{Extent, InodeFlags2};
use crate::inode::{ForkKind, InodeGuard, InodeState};
use crate::units::FileBlock;
use std::ops::Range;

/// Which bytes of one file become those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloneRange {
    /// Offset in the source, a multiple of the block size.
    pub source: u64,
    /// Offset in the target, a multiple of the block size.
    pub target: u64,
    /// Length in bytes: a multiple of the block size, or up to the end of the source.
    pub len: u64,
}

impl FileEdit<'_> {
    /// Makes a range of this file the same as one of `source`, by sharing its blocks; without
    /// `source`, one of this file itself. The file grows if it ends before.
    ///
    /// # Errors
    /// The volume has no reflink feature; the range is not in whole blocks, not in the source, or
    /// meets itself; no space for what the groups keep of it; a damaged structure; the device
    /// failed.
    pub fn clone_from(
        &mut self,
        source: Option<&mut InodeGuard>,
        range: CloneRange,
    ) -> Result<(), Error> {
        self.check_clone(source.as_deref(), &range)?;
        self.start();
        if range.len > 0 {
            self.zero_behind_end(range.target)?;
            self.share(source, &range)?;
            return self.finish(range.target + range.len);
        }
        Ok(())
    }

    /// Maps the blocks of a checked range.
    pub(super) fn share(
        &mut self,
        mut source: Option<&mut InodeGuard>,
        range: &CloneRange,
    ) -> Result<(), Error> {
        self.mark_as_sharing(source.as_deref_mut())?;
        let blocks = self.blocks_over(&(range.source..range.source + range.len));
        let target = range.target >> self.geometry().block_log;
        let mut at = blocks.start;
        while at < blocks.end {
            let to = FileBlock(target + (at.0 - blocks.start.0));
            let done = self.share_piece(source.as_deref(), at..blocks.end, to)?;
            at = FileBlock(at.0 + done);
        }
        Ok(())
    }

    /// Gives both files the flag that says that they may share blocks.
    fn mark_as_sharing(&mut self, source: Option<&mut InodeGuard>) -> Result<(), Error> {
        let flag = InodeFlags2::REFLINK;
        if let Some(source) = source.filter(|source| !source.core.flags2.contains(flag)) {
            let trans = self.volume.begin()?;
            source.core.flags2 |= flag;
            source.touch();
            trans.commit(&mut [source])?;
        }
        if !self.inode.core.flags2.contains(flag) {
            let trans = self.volume.begin()?;
            self.inode.core.flags2 |= flag;
            self.commit(trans)?;
        }
        Ok(())
    }

    /// Makes the front of a range of blocks from `to` on what `from` is in the source; returns how
    /// many blocks that were.
    fn share_piece(
        &mut self,
        source: Option<&InodeGuard>,
        from: Range<FileBlock>,
        to: FileBlock,
    ) -> Result<u64, Error> {
        let state: &InodeState = source.map_or(&**self.inode, |source| source);
        let extents = bmap::extents(self.volume, state, ForkKind::Data)?;
        let first = extents.first_in(from.start, from.end);
        // What was never written reads as zeros, as a hole does.
        let hole = match first {
            None => Some(from.end),
            Some(extent) if extent.offset > from.start => Some(extent.offset),
            Some(extent) if extent.unwritten => Some(extent.end()),
            Some(_) => None,
        };
        let (Some(extent), None) = (first, hole) else {
            let len = hole.unwrap_or(from.end).0 - from.start.0;
            self.unmap(to..FileBlock(to.0 + len))?;
            return Ok(len);
        };
        let end = FileBlock(to.0 + u64::from(extent.len));
        let old = bmap::extents(self.volume, self.inode, ForkKind::Data)?.first_in(to, end);
        let new = Extent { offset: to, ..extent };
        match old.filter(|old| old.offset == to) {
            Some(old) => {
                let len = old.len.min(new.len);
                self.share_blocks(Some(Extent { len, ..old }), Extent { len, ..new })
            }
            // As far as nothing is mapped.
            None => {
                let end = old.map_or(end, |old| old.offset);
                self.share_blocks(None, Extent { len: (end.0 - to.0) as u32, ..new })
            }
        }
    }

    /// Maps the blocks of `new`, which have an owner, in place of `old`, if that is mapped; one
    /// step. Returns how many blocks that were.
    fn share_blocks(&mut self, old: Option<Extent>, new: Extent) -> Result<u64, Error> {
        if old.is_some_and(|old| old.start == new.start && !old.unwritten) {
            return Ok(new.len.into());
        }
        let kind = ForkKind::Data;
        let mut trans = self.volume.begin()?;
        let places = [new.offset, new.end()];
        let starts = [new.start, old.map_or(new.start, |old| old.start)];
        bmap::prepare(&mut trans, self.inode, kind, &starts, &places, 2)?;
        let mut new = bmap::bounded(&mut trans, self.inode, kind, new)?;
        let mut replaced = None;
        if let Some(old) = old {
            let old = bmap::bounded(&mut trans, self.inode, kind, Extent { len: new.len, ..old })?;
            new.len = old.len;
            replaced = Some(old);
        }
        bmap::replace_shared(&mut trans, self.inode, replaced, new)?;
        self.commit(trans)?;
        Ok(new.len.into())
    }

    pub(super) fn check_clone(
        &self,
        source: Option<&InodeGuard>,
        range: &CloneRange,
    ) -> Result<(), Error> {
        let bytes = range.source..range.source.saturating_add(range.len);
        if !self.geometry().features.reflink() {
            return Err(self.invalid(&bytes, "the volume cannot share blocks (feature reflink)"));
        }
        let end = self.check_end(range.target, range.len)?;
        let within = source.is_none();
        let source: &InodeState = source.map_or(&**self.inode, |source| source);
        let size = source.core.size;
        if bytes.end > size {
            return Err(self.invalid(&bytes, &format!("the source has {size} bytes")));
        }
        let block_size = self.geometry().block_size() as u64;
        let aligned = range.source.is_multiple_of(block_size)
            && range.target.is_multiple_of(block_size)
            && (range.len.is_multiple_of(block_size)
                || (bytes.end == size && end >= self.inode.core.size));
        if !aligned {
            let what = format!(
                "offsets and length must be multiples of the block size, {block_size}; a length \
                 may also reach from the source's end to the target's"
            );
            return Err(self.invalid(&bytes, &what));
        }
        let apart = range.source.abs_diff(range.target) >= range.len;
        if within && !apart {
            return Err(self.invalid(&bytes, "source and target overlap"));
        }
        Ok(())
    }
}

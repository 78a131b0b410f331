//! Blocks shared between files.
//!
//! The target maps the blocks of the source; both carry the reflink flag from before the first
//! block is shared. A piece that the target had mapped is replaced in one transaction.

use super::FileEdit;
use crate::bmap;
use crate::error::Error;
use crate::file::OpenFile;
use crate::file::kind::check_kind;
use crate::format::{Extent, InodeFlags2, Timestamp};
use crate::inode::{DataLock, ForkKind, Inode, InodeGuard};
use crate::units::FileBlock;
use crate::volume::Volume;
use std::ops::Range;
use std::sync::Arc;

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

/// Two files, or one, whose data is locked.
pub(super) struct Pair<'a> {
    /// `None` if it is the target.
    source: Option<Arc<Inode>>,
    target: FileEdit<'a>,
    _lock: Option<DataLock>,
}

impl<'a> Pair<'a> {
    fn open(
        source: &OpenFile,
        target: &'a OpenFile,
        now: Option<Timestamp>,
    ) -> Result<Self, Error> {
        let volume = &*target.volume;
        if !Arc::ptr_eq(&source.volume, &target.volume) {
            let what = "blocks are shared within one volume: copy the data instead";
            return Err(Error::CrossDevice(what.into()));
        }
        if Arc::ptr_eq(&source.inode, &target.inode) {
            return Ok(Self { source: None, target: target.edit(now)?, _lock: None });
        }
        check_kind(volume, &source.inode.read())?;
        let locks = if source.number() < target.number() {
            let first = source.locks.lock_data();
            (first, target.locks.lock_data())
        } else {
            let first = target.locks.lock_data();
            (source.locks.lock_data(), first)
        };
        let lock = FileEdit::send_dirty(volume, &source.inode, locks.0)?;
        let target = FileEdit::begin_on(volume, &target.inode, locks.1, now)?;
        Ok(Self { source: Some(Arc::clone(&source.inode)), target, _lock: Some(lock) })
    }
}

impl OpenFile {
    /// Makes a range of this file the same as one of `source`, perhaps the same file, by sharing its
    /// blocks, at the time `now`; without one its times stay. This file grows if it ends before.
    ///
    /// # Errors
    /// One is no regular file; they are on two volumes; the volume has no reflink feature; the
    /// range is not in whole blocks, not in the source, or meets itself; no space for what the
    /// groups keep of it; a damaged structure; the device failed.
    pub fn clone_range(
        &self,
        source: &Self,
        range: &CloneRange,
        now: impl Into<Option<Timestamp>>,
    ) -> Result<(), Error> {
        let Pair { source, mut target, .. } = Pair::open(source, self, now.into())?;
        target.check_clone(source.as_deref(), range)?;
        target.start();
        if range.len == 0 {
            return Ok(());
        }
        target.zero_behind_end(range.target)?;
        target.share(source.as_ref(), range)?;
        target.finish(range.target + range.len)
    }

    /// Shares the blocks of a range of this file and one of `source` (perhaps the same file) if they
    /// hold the same bytes; returns whether they do. Sizes and times stay.
    ///
    /// # Errors
    /// As for [`clone_range`](Self::clone_range); the range must lie in both files.
    pub fn dedupe_range(&self, source: &Self, range: &CloneRange) -> Result<bool, Error> {
        let Pair { source, target, .. } = Pair::open(source, self, None)?;
        target.dedupe(source.as_ref(), range)
    }
}

impl FileEdit<'_> {
    /// Maps the blocks of a checked range.
    pub(super) fn share(
        &mut self,
        source: Option<&Arc<Inode>>,
        range: &CloneRange,
    ) -> Result<(), Error> {
        mark_as_sharing(self.volume, &self.inode)?;
        if let Some(source) = source {
            mark_as_sharing(self.volume, source)?;
        }
        let blocks = self.blocks_over(&(range.source..range.source + range.len));
        let target = range.target >> self.geometry().block_log;
        let mut at = blocks.start;
        while at < blocks.end {
            let to = FileBlock(target + (at.0 - blocks.start.0));
            let done = self.share_piece(source.map(|source| &**source), at..blocks.end, to)?;
            at = FileBlock(at.0 + done);
        }
        Ok(())
    }

    /// Makes the front of a range of blocks from `to` on what `from` is in the source; returns how
    /// many blocks that were.
    fn share_piece(
        &mut self,
        source: Option<&Inode>,
        from: Range<FileBlock>,
        to: FileBlock,
    ) -> Result<u64, Error> {
        let state = source.unwrap_or(&self.inode).read();
        let extents = bmap::extents(self.volume, &state, ForkKind::Data)?;
        let first = extents.first_in(from.start, from.end);
        drop(state);
        // Unwritten blocks read as zeros, as a hole does.
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
        let old = self.extents()?.first_in(to, end);
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
        let mut step = if old.is_some() { self.begin_freeing()? } else { self.begin()? };
        let (trans, inode) = (&mut step.trans, &mut step.inode);
        let places = [new.offset, new.end()];
        let starts = [new.start, old.map_or(new.start, |old| old.start)];
        bmap::prepare(trans, inode, kind, &starts, &places, 2)?;
        let mut new = bmap::bounded(trans, inode, kind, new)?;
        let mut replaced = None;
        if let Some(old) = old {
            let old = bmap::bounded(trans, inode, kind, Extent { len: new.len, ..old })?;
            new.len = old.len;
            replaced = Some(old);
        }
        bmap::replace_shared(trans, inode, replaced, new)?;
        self.commit(step)?;
        Ok(new.len.into())
    }

    pub(super) fn check_clone(
        &self,
        source: Option<&Inode>,
        range: &CloneRange,
    ) -> Result<(), Error> {
        let bytes = range.source..range.source.saturating_add(range.len);
        if !self.geometry().features.reflink() {
            let what = "the volume cannot share blocks (feature reflink)";
            return Err(Error::NotSupported(self.about(&bytes, what)));
        }
        let end = self.check_end(range.target, range.len)?;
        let within = source.is_none();
        let size = source.unwrap_or(&self.inode).read().core.size;
        if bytes.end > size {
            return Err(self.invalid(&bytes, &format!("the source has {size} bytes")));
        }
        let block_size = self.geometry().block_size() as u64;
        let aligned = range.source.is_multiple_of(block_size)
            && range.target.is_multiple_of(block_size)
            && (range.len.is_multiple_of(block_size) || (bytes.end == size && end >= self.size()));
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

/// Gives a file the flag that says that it may share blocks.
fn mark_as_sharing(volume: &Volume, inode: &Arc<Inode>) -> Result<(), Error> {
    if inode.read().core.flags2.contains(InodeFlags2::REFLINK) {
        return Ok(());
    }
    let trans = volume.begin_accepted(volume.longest_log_bytes())?;
    let mut inode = InodeGuard::new(inode);
    inode.core.flags2 |= InodeFlags2::REFLINK;
    inode.touch();
    trans.commit(&mut [&mut inode])
}

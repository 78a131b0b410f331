//! Where data and holes of a file begin.

use super::OpenFile;
use super::kind::check_kind;
use crate::bmap;
use crate::error::Error;
use crate::inode::ForkKind;
use crate::units::FileBlock;

impl OpenFile {
    /// The first byte at or behind `offset` that is stored; `None` if there is none before the end
    /// of the file. Ranges that are not stored read as zeros.
    ///
    /// # Errors
    /// It is no regular file; the mapping is damaged; the device failed.
    pub fn seek_data(&self, offset: u64) -> Result<Option<u64>, Error> {
        let state = self.inode.read();
        check_kind(&self.volume, &state)?;
        let (geometry, size) = (self.volume.geometry(), state.core.size);
        if offset >= size {
            return Ok(None);
        }
        let blocks = offset >> geometry.block_log..geometry.blocks_for(size);
        let extents = bmap::extents(&self.volume, &state, ForkKind::Data)?;
        let (mut at, mut stored) = (FileBlock(blocks.start), None);
        while let Some(extent) = extents.first_in(at, FileBlock(blocks.end)) {
            if !extent.unwritten {
                stored = Some(extent.offset.0);
                break;
            }
            at = extent.end();
        }
        let dirty = state.memory.dirty.as_ref();
        let dirty = dirty.and_then(|dirty| dirty.ranges(blocks).next()).map(|range| range.start);
        let first = stored.into_iter().chain(dirty).min();
        Ok(first.map(|block| offset.max(block << geometry.block_log)))
    }

    /// The first byte at or behind `offset` that is not stored; the end of the file counts as one.
    /// `None` if the file ends before `offset`.
    ///
    /// # Errors
    /// As for [`seek_data`](Self::seek_data).
    pub fn seek_hole(&self, offset: u64) -> Result<Option<u64>, Error> {
        let state = self.inode.read();
        check_kind(&self.volume, &state)?;
        let (geometry, size) = (self.volume.geometry(), state.core.size);
        if offset >= size {
            return Ok(None);
        }
        let (first, end) = (offset >> geometry.block_log, geometry.blocks_for(size));
        let extents = bmap::extents(&self.volume, &state, ForkKind::Data)?;
        let mut at = first;
        while at < end {
            let stored = extents.first_in(FileBlock(at), FileBlock(at + 1));
            let dirty = state.memory.dirty.as_ref();
            if let Some(extent) = stored.filter(|extent| !extent.unwritten) {
                at = extent.end().0;
            } else if let Some(range) = dirty.and_then(|dirty| dirty.ranges(at..at + 1).next()) {
                at = range.end;
            } else {
                break;
            }
        }
        let hole = if at >= end { size } else { at << geometry.block_log };
        Ok(Some(hole.clamp(offset, size)))
    }
}

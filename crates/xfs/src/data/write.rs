//! Writing into memory.

use super::DirtyData;
use super::budget::Budget;
use crate::bmap;
use crate::error::Error;
use crate::format::{InodeFlags2, Timestamp};
use crate::inode::{ForkKind, Inode, InodeState};
use crate::ops::{MAX_FILE_SIZE, check_kind, read_at};
use crate::units::FileBlock;
use crate::volume::Volume;
use std::ops::Range;
use std::sync::Arc;

/// Longest piece of zeros.
const ZEROES_MAX: u64 = 1 << 20;

/// Bytes up to which a write is copied to the end of the piece before it.
const SMALL_WRITE: usize = 64 << 10;

/// A write that is to be done in memory. The data of the inode is locked.
pub(super) struct BufferedWrite<'a> {
    pub(super) volume: &'a Volume,
    pub(super) inode: &'a Inode,
    pub(super) budget: &'a Arc<Budget>,
    pub(super) offset: u64,
    pub(super) memory: &'a Arc<Vec<u8>>,
    pub(super) range: Range<usize>,
    pub(super) now: Timestamp,
}

/// Content of consecutive blocks.
type Content = (u64, Arc<Vec<u8>>, Range<usize>);

impl BufferedWrite<'_> {
    /// Does the write; returns by how many bytes more the file is dirty, less if negative.
    pub(super) fn perform(&self) -> Result<i64, Error> {
        let state = self.inode.read();
        check_kind(self.volume, &state)?;
        let (len, size) = (self.range.len() as u64, state.core.size);
        let end = self.offset.checked_add(len).filter(|end| *end <= MAX_FILE_SIZE);
        let end = end.ok_or_else(|| {
            let (number, offset) = (state.number, self.offset);
            Error::TooLarge(format!(
                "inode {number}: {len} bytes at {offset}: the limit of a file is 2^63 - 1"
            ))
        })?;
        let appends = self.offset == size && self.range.len() <= SMALL_WRITE;
        let mut contents = Vec::new();
        if self.offset > size {
            self.clear_gap(&state, size, &mut contents)?;
        }
        self.split(&state, end, &mut contents)?;
        let reserved = self.reserve(&state, &contents)?;
        drop(state);
        let mut state = self.inode.write();
        let block_log = self.volume.geometry().block_log;
        let stored_size = state.core.size;
        let dirty = state.dirty.get_or_insert_with(|| {
            Box::new(DirtyData::new(block_log, self.budget, stored_size, self.now))
        });
        let before = dirty.bytes();
        if !(appends && dirty.append(self.offset, &self.memory[self.range.clone()])) {
            for (block, memory, range) in contents {
                dirty.put(block, &memory, range);
            }
        }
        dirty.reserved += reserved;
        (dirty.modified, dirty.unstamped) = (self.now, true);
        let more = dirty.bytes() as i64 - before as i64;
        state.growth.is_open = true;
        state.core.size = state.core.size.max(end);
        (state.core.mtime, state.core.ctime) = (self.now, self.now);
        Ok(more)
    }

    fn block_size(&self) -> u64 {
        self.volume.geometry().block_size() as u64
    }

    /// Cuts the write in whole blocks; what it leaves of the first and of the last is filled in.
    fn split(&self, state: &InodeState, end: u64, out: &mut Vec<Content>) -> Result<(), Error> {
        let unit = self.block_size();
        let (mut at, mut from) = (self.offset, self.range.start);
        if at % unit != 0 {
            let len = (unit - at % unit).min(end - at) as usize;
            out.push(self.partial(state, at, from..from + len)?);
            (at, from) = (at + len as u64, from + len);
        }
        // Behind the end of the file there is nothing to be kept.
        let whole = if end >= state.core.size { end } else { (end / unit * unit).max(at) };
        if at < whole {
            let len = (whole - at) as usize;
            out.push((at / unit, Arc::clone(self.memory), from..from + len));
            (at, from) = (whole, from + len);
        }
        if at < end {
            out.push(self.partial(state, at, from..self.range.end)?);
        }
        Ok(())
    }

    /// A block with a part of the write in it.
    fn partial(&self, state: &InodeState, at: u64, range: Range<usize>) -> Result<Content, Error> {
        let unit = self.block_size();
        let start = at / unit * unit;
        let mut block = vec![0; unit as usize];
        read_at(self.volume, state, start, &mut block)?;
        let inside = (at - start) as usize;
        block[inside..inside + range.len()].copy_from_slice(&self.memory[range]);
        let len = block.len();
        Ok((start / unit, Arc::new(block), 0..len))
    }

    /// What is stored between the end of the file and the write becomes visible: zeros.
    fn clear_gap(
        &self,
        state: &InodeState,
        size: u64,
        out: &mut Vec<Content>,
    ) -> Result<(), Error> {
        let unit = self.block_size();
        let gap = size / unit..self.offset.div_ceil(unit);
        let extents = bmap::extents(self.volume, state, ForkKind::Data)?;
        let mut at = FileBlock(gap.start);
        while let Some(extent) = extents.first_in(at, FileBlock(gap.end)) {
            let mut blocks = extent.offset.0.max(gap.start)..extent.end().0.min(gap.end);
            at = extent.end();
            if extent.unwritten {
                continue;
            }
            if blocks.start * unit < size {
                // Behind the end it reads as zeros.
                out.push(self.partial(state, blocks.start * unit, 0..0)?);
                blocks.start += 1;
            }
            while !blocks.is_empty() {
                let len = (blocks.end - blocks.start).min(ZEROES_MAX / unit);
                let zeros = Arc::new(vec![0; (len * unit) as usize]);
                let range = 0..zeros.len();
                out.push((blocks.start, zeros, range));
                blocks.start += len;
            }
        }
        Ok(())
    }

    /// Sets aside the space that the blocks will need; returns how many blocks.
    fn reserve(&self, state: &InodeState, contents: &[Content]) -> Result<u64, Error> {
        let mut needed = match &state.dirty {
            Some(_) => 0,
            None => u64::from(self.volume.heights().bmap_data),
        };
        let extents = bmap::extents(self.volume, state, ForkKind::Data)?;
        let may_share = state.core.flags2.contains(InodeFlags2::REFLINK);
        for (first, _, range) in contents {
            let blocks = *first..first + (range.len() as u64).div_ceil(self.block_size());
            let dirty = state.dirty.iter().flat_map(|dirty| dirty.ranges(blocks.clone()));
            let mut at = blocks.start;
            for known in dirty.chain(std::iter::once(blocks.end..blocks.end)) {
                let gap = at..known.start.min(blocks.end);
                at = known.end;
                if gap.is_empty() {
                    continue;
                }
                needed += gap.end - gap.start;
                let mut from = FileBlock(gap.start);
                while let Some(extent) =
                    extents.first_in(from, FileBlock(gap.end)).filter(|_| !may_share)
                {
                    let mapped = extent.offset.0.max(gap.start)..extent.end().0.min(gap.end);
                    needed -= mapped.end - mapped.start;
                    from = extent.end();
                }
            }
        }
        self.volume.reserve_ahead(needed)?;
        Ok(needed)
    }
}

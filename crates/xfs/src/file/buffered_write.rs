//! Writing into memory.

use super::MAX_FILE_SIZE;
use super::OpenFile;
use super::kind::check_kind;
use super::read::read;
use super::space::with_gathered;
use crate::bmap;
use crate::error::Error;
use crate::format::{InodeFlags2, Timestamp};
use crate::inode::{DirtyData, ForkKind, InodeState, file_key};
use crate::space::Reservation;
use crate::units::FileBlock;
use crate::volume::Volume;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Longest piece of zeros.
const ZEROES_MAX: u64 = 1 << 20;

/// Bytes up to which a write is copied to the end of the piece before it.
const SMALL_WRITE: usize = 64 << 10;

impl OpenFile {
    /// Writes `bytes` at `offset`, in memory. The file grows if it ends before. It is part of the
    /// file at once: readers see it. It is durable when a ticket says so. Waits while too much is
    /// dirty.
    ///
    /// On a volume that is filled without a journal, it is written past memory.
    ///
    /// # Errors
    /// The file would be larger than the format allows; it is no regular file; no space; the blocks
    /// at the ends of the range could not be read; the volume is read-only.
    pub fn write(
        &self,
        offset: u64,
        bytes: &[u8],
        terms: impl Into<WriteTerms>,
    ) -> Result<(), Error> {
        self.write_bytes(Place::At(offset), Bytes::Slice(bytes), terms.into()).map(drop)
    }

    /// As [`write`](Self::write), at the end of the file: behind what others append meanwhile.
    /// Returns where that was.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn append(&self, bytes: &[u8], terms: impl Into<WriteTerms>) -> Result<u64, Error> {
        self.write_bytes(Place::End, Bytes::Slice(bytes), terms.into())
    }

    /// As [`write`](Self::write), of the bytes of `memory` in `range`, which are not copied as long
    /// as they are whole blocks.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`Error::Invalid`] if `range` leaves the memory.
    pub fn write_shared(
        &self,
        offset: u64,
        memory: &Arc<Vec<u8>>,
        range: Range<usize>,
        terms: impl Into<WriteTerms>,
    ) -> Result<(), Error> {
        if memory.get(range.clone()).is_none() {
            let what = format!("the bytes {range:?} are not in the {} of the memory", memory.len());
            return Err(Error::Invalid(what));
        }
        let bytes = Bytes::Shared(Cow::Borrowed(memory), range);
        self.write_bytes(Place::At(offset), bytes, terms.into()).map(drop)
    }

    /// Returns where the bytes went.
    fn write_bytes(&self, place: Place, bytes: Bytes<'_>, terms: WriteTerms) -> Result<u64, Error> {
        let len = bytes.len() as u64;
        if len == 0 {
            let state = self.inode.read();
            let offset = place.offset(|| state.core.size);
            return terms.check(&state, offset).map(|()| offset);
        }
        // Before anything is waited for.
        self.check_end(place.offset(|| 0), len)?;
        if !self.volume.is_live() {
            let (memory, range) = bytes.share(0..bytes.len());
            let now = {
                let state = self.inode.read();
                terms.check(&state, place.offset(|| state.core.size))?;
                terms.now.unwrap_or(state.core.mtime)
            };
            return self.write_past_memory(place, &memory, range, now);
        }
        let volume = &*self.volume;
        let _change = volume.changes().begin()?;
        let budget = &volume.files().budget;
        let permit = place.most_blocks(len, volume.geometry().block_size() as u64);
        volume.take_permit(permit)?;
        let bytes = bytes.copied_if_large();
        let mut write = BufferedWrite { file: self, place, offset: 0, end: 0, bytes, terms };
        let result = with_gathered(volume, || write.perform());
        // After the change of the lists: a writer that waits for a permit looks there when it
        // wakes.
        budget.end_permit(permit, result.as_ref().copied().unwrap_or(0));
        result?;
        if let Some(journal) = volume.journal().filter(|_| budget.is_half_taken()) {
            journal.want_write_back();
        }
        Ok(write.offset)
    }

    /// The byte `len` behind `offset`, where the file may end.
    fn check_end(&self, offset: u64, len: u64) -> Result<u64, Error> {
        let end = offset.checked_add(len).filter(|end| *end <= MAX_FILE_SIZE);
        end.ok_or_else(|| {
            let number = self.number();
            Error::TooLarge(format!(
                "inode {number}: {len} bytes at {offset}: the limit of a file is 2^63 - 1"
            ))
        })
    }
}

impl Volume {
    /// Waits for a permit to make `bytes` bytes dirty.
    fn take_permit(&self, bytes: u64) -> Result<(), Error> {
        loop {
            let Err(returns) = self.files().budget.try_take(bytes) else { return Ok(()) };
            let files = self.files().dirty();
            let written = self.files().write_back(self, &files);
            match self.files().budget.try_take(bytes) {
                Ok(()) => return Ok(()),
                Err(now) if now != returns => {}
                // No permit came of it. Either other threads have all dirty data under way, and
                // give their permits back in any case; or it cannot be written.
                Err(_) => match written {
                    Ok(()) => {
                        undercroft_block::flush_plugs();
                        self.files().budget.wait(returns);
                    }
                    Err(failures) => return Err(super::dirty_files::first_error(failures)),
                },
            }
        }
    }
}

/// The terms of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteTerms {
    /// The times of the file become this; without it they stay.
    pub now: Option<Timestamp>,
    /// A file that is immutable is not written, and one that may only grow is written behind its end
    /// alone.
    pub heeds_flags: bool,
}

impl<T: Into<Option<Timestamp>>> From<T> for WriteTerms {
    /// At this time, whatever the flags of the file are.
    fn from(now: T) -> Self {
        Self { now: now.into(), heeds_flags: false }
    }
}

impl WriteTerms {
    fn check(&self, inode: &InodeState, offset: u64) -> Result<(), Error> {
        let appends = offset >= inode.core.size;
        if self.heeds_flags { inode.expect_mutable(!appends) } else { Ok(()) }
    }
}

/// Where the bytes of a write go.
#[derive(Clone, Copy)]
pub(super) enum Place {
    At(u64),
    /// Where the file ends when its data is locked.
    End,
}

impl Place {
    pub(super) fn offset(self, size: impl FnOnce() -> u64) -> u64 {
        match self {
            Self::At(offset) => offset,
            Self::End => size(),
        }
    }

    /// Bytes of the blocks of `unit` bytes that `len` bytes may touch.
    fn most_blocks(self, len: u64, unit: u64) -> u64 {
        match self {
            Self::At(offset) => ((offset + len).div_ceil(unit) - offset / unit) * unit,
            Self::End => (len.div_ceil(unit) + 1) * unit,
        }
    }
}

/// The bytes of a write.
enum Bytes<'b> {
    Slice(&'b [u8]),
    Shared(Cow<'b, Arc<Vec<u8>>>, Range<usize>),
}

impl Bytes<'_> {
    /// Bytes that are not appended to others, in memory of their own: the copy is made before the
    /// data of the file is locked, by many writers at a time.
    fn copied_if_large(self) -> Self {
        match self {
            Self::Slice(bytes) if bytes.len() > SMALL_WRITE => {
                Self::Shared(Cow::Owned(Arc::new(bytes.to_vec())), 0..bytes.len())
            }
            other => other,
        }
    }

    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Slice(bytes) => bytes,
            Self::Shared(memory, range) => &memory[range.clone()],
        }
    }

    /// Some of the bytes in memory of their own.
    fn share(&self, part: Range<usize>) -> (Arc<Vec<u8>>, Range<usize>) {
        match self {
            Self::Slice(bytes) => (Arc::new(bytes[part.clone()].to_vec()), 0..part.len()),
            Self::Shared(memory, range) => {
                (Arc::clone(memory), range.start + part.start..range.start + part.end)
            }
        }
    }
}

/// A write that is to be done in memory.
struct BufferedWrite<'a> {
    file: &'a OpenFile,
    place: Place,
    /// What that is, while the data of the file is locked.
    offset: u64,
    end: u64,
    bytes: Bytes<'a>,
    terms: WriteTerms,
}

/// Content that consecutive blocks get, before it is there.
enum Planned {
    /// The block at the byte `start`, some of which stays; the part of the write goes to `from`.
    Partial { start: u64, from: u64, part: Range<usize> },
    /// Whole blocks of the write from this one on.
    Whole { block: u64, part: Range<usize> },
    /// Zeros from this block on.
    Zeroes { block: u64, len: usize },
}

/// Content of consecutive blocks from the first.
type Content = (u64, Arc<Vec<u8>>, Range<usize>);

impl BufferedWrite<'_> {
    /// Does the write; returns by how many bytes more the file is dirty, less if negative. Its inode is
    /// locked once, unless bytes of the device stay in a block.
    fn perform(&mut self) -> Result<i64, Error> {
        // As long as this is held, no other thread changes the file, or frees it.
        let _lock = self.file.locks.lock_data();
        let inode = &self.file.inode;
        let mut state = inode.write();
        self.offset = self.place.offset(|| state.core.size);
        self.terms.check(&state, self.offset)?;
        self.end = self.file.check_end(self.offset, self.bytes.len() as u64)?;
        let (planned, appends) = self.plan(&state)?;
        let mut reserved = self.reserve(&state, &planned)?;
        if appends && self.bytes.len() <= SMALL_WRITE {
            // Mostly to the end of the data that the last write made dirty.
            let append = |dirty: &mut DirtyData| dirty.append(self.offset, self.bytes.as_slice());
            if let Some(more) = self.apply(&mut state, &mut reserved, append) {
                return Ok(more);
            }
        }
        let contents = || planned.iter().map(|planned| self.content(planned)).collect();
        let contents: Result<SmallVec<[Content; 3]>, Error> =
            if planned.iter().any(|planned| matches!(planned, Planned::Partial { .. })) {
                // A read looks at the inode, too, and others may while it waits for the device.
                drop(state);
                let contents = contents();
                state = inode.write();
                contents
            } else {
                contents()
            };
        let contents = contents?;
        let put = |dirty: &mut DirtyData| {
            for (block, memory, range) in contents {
                dirty.put(block, &memory, range);
            }
            true
        };
        Ok(self.apply(&mut state, &mut reserved, put).unwrap_or(0))
    }

    /// Makes the bytes part of the file if `put` can; returns by how many bytes more it is dirty.
    fn apply(
        &self,
        state: &mut InodeState,
        reserved: &mut Reservation,
        put: impl FnOnce(&mut DirtyData) -> bool,
    ) -> Option<i64> {
        let volume = &*self.file.volume;
        let (geometry, size) = (volume.geometry(), state.core.size);
        let dirty = state.memory.dirty.get_or_insert_with(|| {
            let budget = &volume.files().budget;
            Box::new(DirtyData::new(geometry.block_log, budget, size))
        });
        let before = dirty.bytes();
        let done = put(dirty);
        let more = dirty.bytes() as i64 - before as i64;
        if !done {
            // As it was: a file without dirty data is not listed as one with it.
            if dirty.is_empty() && !dirty.unstamped {
                state.memory.dirty = None;
            }
            return None;
        }
        if self.offset > size {
            dirty.set_jump(self.offset >> geometry.block_log, size);
        }
        dirty.reserved.join(std::mem::take(reserved));
        dirty.unstamped = true;
        state.memory.growth.is_open = true;
        state.core.size = state.core.size.max(self.end);
        if let Some(now) = self.terms.now {
            (state.core.mtime, state.core.ctime) = (now, now);
        }
        volume.files().add_dirty(file_key(state), &self.file.inode);
        Some(more)
    }

    fn unit(&self) -> u64 {
        self.file.volume.geometry().block_size() as u64
    }

    /// The new content of the blocks that the write touches, and whether it reaches the end of the
    /// file.
    fn plan(&self, state: &InodeState) -> Result<(SmallVec<[Planned; 3]>, bool), Error> {
        check_kind(&self.file.volume, state)?;
        let (unit, size) = (self.unit(), state.core.size);
        let mut planned = SmallVec::new();
        if self.offset > size {
            self.clear_gap(state, size, &mut planned)?;
        }
        let (mut at, mut from) = (self.offset, 0);
        if at % unit != 0 {
            let len = (unit - at % unit).min(self.end - at) as usize;
            planned.push(Planned::Partial { start: at / unit * unit, from: at, part: 0..len });
            (at, from) = (at + len as u64, len);
        }
        // Behind the end of the file there is nothing to be kept.
        let end = self.end;
        let whole = if end >= size { end } else { (end / unit * unit).max(at) };
        if at < whole {
            let len = (whole - at) as usize;
            planned.push(Planned::Whole { block: at / unit, part: from..from + len });
            (at, from) = (whole, from + len);
        }
        if at < end {
            let part = from..self.bytes.len();
            planned.push(Planned::Partial { start: at / unit * unit, from: at, part });
        }
        Ok((planned, self.offset == size))
    }

    /// Bytes stored between the end of the file and the write become visible: as zeros.
    fn clear_gap(
        &self,
        state: &InodeState,
        size: u64,
        planned: &mut SmallVec<[Planned; 3]>,
    ) -> Result<(), Error> {
        let unit = self.unit();
        let gap = size / unit..self.offset.div_ceil(unit);
        let extents = bmap::extents(&self.file.volume, state, ForkKind::Data)?;
        let mut at = FileBlock(gap.start);
        while let Some(extent) = extents.first_in(at, FileBlock(gap.end)) {
            let mut blocks = extent.offset.0.max(gap.start)..extent.end().0.min(gap.end);
            at = extent.end();
            if extent.unwritten {
                continue;
            }
            if blocks.start * unit < size {
                // Behind the end it reads as zeros.
                let start = blocks.start * unit;
                planned.push(Planned::Partial { start, from: start, part: 0..0 });
                blocks.start += 1;
            }
            while !blocks.is_empty() {
                let len = (blocks.end - blocks.start).min(ZEROES_MAX / unit);
                planned.push(Planned::Zeroes { block: blocks.start, len: (len * unit) as usize });
                blocks.start += len;
            }
        }
        Ok(())
    }

    /// Carries out the plan.
    fn content(&self, planned: &Planned) -> Result<Content, Error> {
        let unit = self.unit();
        Ok(match planned {
            Planned::Zeroes { block, len } => (*block, Arc::new(vec![0; *len]), 0..*len),
            Planned::Whole { block, part } => {
                let (memory, range) = self.bytes.share(part.clone());
                (*block, memory, range)
            }
            Planned::Partial { start, from, part } => {
                let OpenFile { volume, inode, locks, .. } = self.file;
                let mut block = vec![0; unit as usize];
                // Bytes behind the end of the file stay zero.
                read(volume, inode, locks, *start, &mut block)?;
                let inside = (from - start) as usize;
                let part = &self.bytes.as_slice()[part.clone()];
                block[inside..inside + part.len()].copy_from_slice(part);
                let len = block.len();
                (start / unit, Arc::new(block), 0..len)
            }
        })
    }

    /// Sets aside the space that the blocks will need.
    fn reserve(&self, state: &InodeState, planned: &[Planned]) -> Result<Reservation, Error> {
        let volume = &*self.file.volume;
        let mut needed = match &state.memory.dirty {
            Some(_) => 0,
            None => u64::from(volume.heights().bmap_data),
        };
        let extents = bmap::extents(volume, state, ForkKind::Data)?;
        let may_share = state.core.flags2.contains(InodeFlags2::REFLINK);
        for planned in planned {
            let blocks = planned.blocks(self.unit());
            let dirty = state.memory.dirty.iter().flat_map(|dirty| dirty.ranges(blocks.clone()));
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
        volume.reserve_ahead(needed)
    }
}

impl Planned {
    /// The blocks that it is for.
    fn blocks(&self, unit: u64) -> Range<u64> {
        match self {
            Self::Partial { start, .. } => start / unit..start / unit + 1,
            Self::Whole { block, part } => *block..block + (part.len() as u64).div_ceil(unit),
            Self::Zeroes { block, len } => *block..block + *len as u64 / unit,
        }
    }
}

//! Reading the data of files.
//!
//! A read looks at the mapping under the lock of the inode, takes dirty data from memory there, and
//! lets the lock go; then it reads from the device. Meanwhile the blocks stay the file's
//! ([`FileLocks::use_blocks`]). The device reads into memory that the thread uses again and again,
//! from where bytes are copied once, while the processor still has them; or, where the caller lends
//! memory that devices take, into that.

use super::OpenFile;
use super::kind::check_kind;
use super::stored_parts::{Part, byte_offset, leave_out, part};
use crate::bmap::{self, ForkReader};
use crate::error::{Error, ErrorKind};
use crate::format::{Extent, FileType};
use crate::inode::{FileLocks, ForkContent, ForkKind, Inode, InodeState};
use crate::read_ahead::Pieces;
use crate::symlink;
use crate::units::FileBlock;
use crate::volume::Volume;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use undercroft_block::{BUFFER_ALIGNMENT, Buffer, Sector, read_into};

/// Longest single read from the device: what a processor's cache holds beside other things.
const CHUNK_BYTES: usize = 256 << 10;

/// Bytes of a long read that are read while the next ones are on their way.
const STEP_BYTES: usize = 4 << 20;

/// Extents that one look at the mapping takes.
const PLAN_MAX: usize = 32;

thread_local! {
    /// Memory for reads of this thread: [`CHUNK_BYTES`], once there was one.
    static SPARE: Cell<Option<Buffer>> = const { Cell::new(None) };
}

impl OpenFile {
    /// Fills `bytes` with the content of the file from `offset` on; returns how many bytes that
    /// were: fewer than asked for at the end of the file, 0 behind it. Ranges that are not stored
    /// read as zeros. Bytes behind those are left as they are. With no bytes to be filled it says
    /// whether the file can be read.
    ///
    /// # Errors
    /// It is no regular file; the mapping is damaged; the device failed.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        if bytes.is_empty() {
            check_kind(&self.volume, &self.inode.read())?;
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = offset.saturating_add(done as u64);
            if bytes.len() - done > CHUNK_BYTES {
                let under_way = (bytes.len() - done).min(2 * STEP_BYTES);
                self.will_read(at..at.saturating_add(under_way as u64));
            }
            let end = bytes.len().min(done + STEP_BYTES);
            let read = self.source().read(at, &mut bytes[done..end])?;
            done += read;
            if done < end {
                break;
            }
        }
        if done > 0 {
            self.follow(offset..offset + done as u64);
        }
        Ok(done)
    }

    fn source(&self) -> Source<'_> {
        Source {
            volume: &self.volume,
            inode: &self.inode,
            locks: &self.locks,
            ahead: self.ahead.get().map(Arc::as_ref),
        }
    }

    /// As [`read`](Self::read), into memory that devices take: whole blocks come without a copy.
    /// Bytes behind those that were read are not the same afterwards.
    ///
    /// # Errors
    /// As [`read`](Self::read); the memory is gone then.
    pub fn read_buffer(&self, offset: u64, mut memory: Buffer) -> Result<(Buffer, usize), Error> {
        let source = self.source();
        let (mut done, mut is_answered) = (0, false);
        // What was read ahead lies in other memory.
        if source.ahead.is_none() {
            let _in_use = self.locks.use_blocks();
            let (planned, parts) = plan(&self.volume, &self.inode, offset, &mut memory)?;
            (done, is_answered) = (planned, parts.len() < PLAN_MAX);
            for part in parts {
                memory = fetch_whole(&self.volume, part, memory)?;
            }
        }
        if !is_answered {
            done += source.read(offset.saturating_add(done as u64), &mut memory[done..])?;
        }
        if done > 0 {
            self.follow(offset..offset + done as u64);
        }
        Ok((memory, done))
    }

    /// The byte ranges of the file that hold data: ascending, within its size, not touching each
    /// other. The rest reads as zeros.
    ///
    /// # Errors
    /// The mapping is damaged, or the device failed.
    pub fn data_ranges(&self) -> Result<Vec<Range<u64>>, Error> {
        data_ranges(&self.volume, &self.inode.read())
    }
}

/// What a read needs.
struct Source<'f> {
    volume: &'f Volume,
    inode: &'f Inode,
    locks: &'f FileLocks,
    /// What is on its way already.
    ahead: Option<&'f Pieces>,
}

impl Source<'_> {
    /// As [`OpenFile::read`].
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        while done < bytes.len() {
            let _in_use = self.locks.use_blocks();
            let at = offset.saturating_add(done as u64);
            let (planned, parts) = plan(self.volume, self.inode, at, &mut bytes[done..])?;
            let version = self.ahead.and_then(|_| self.locks.stable_version());
            for part in parts {
                self.fetch(at, part, version, &mut bytes[done..])?;
            }
            done += planned;
            if planned == 0 {
                break;
            }
        }
        Ok(done)
    }

    /// Fills in a part of what is read from the byte `offset` of the file on. The part is that of
    /// this version of the data, if of any.
    fn fetch(
        &self,
        offset: u64,
        mut part: Part,
        version: Option<u64>,
        bytes: &mut [u8],
    ) -> Result<(), Error> {
        let unit = self.volume.geometry().sector_size();
        while !part.range.is_empty() {
            let at = offset + part.range.start as u64;
            let wanted = part.range.len();
            let loan = self.ahead.and_then(|ahead| ahead.lend(version, at, wanted));
            let mut len = 0;
            if let Some(loan) = loan {
                len = loan.len();
                self.volume.cache().ahead().files().count_used(len);
                bytes[part.range.start..part.range.start + len].copy_from_slice(loan.bytes());
            }
            if len == 0 {
                let gap = self.ahead.map_or(usize::MAX, |ahead| ahead.gap(at, wanted));
                len = wanted.min(gap);
                let here = part.range.start..part.range.start + len;
                fetch(self.volume, part.sector, part.skipped, &mut bytes[here])?;
            }
            part = part.behind(len, unit);
        }
        Ok(())
    }
}

/// As [`OpenFile::read`], of an inode in memory. The caller holds no lock of it.
pub(super) fn read(
    volume: &Volume,
    inode: &Inode,
    locks: &FileLocks,
    offset: u64,
    bytes: &mut [u8],
) -> Result<usize, Error> {
    Source { volume, inode, locks, ahead: None }.read(offset, bytes)
}

/// Looks where the front of a range is, and fills in what needs no device. Returns how many bytes
/// that answers, and those of them that are to be read.
pub(super) fn plan(
    volume: &Volume,
    inode: &Inode,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(usize, SmallVec<[Part; 4]>), Error> {
    let mut parts = SmallVec::new();
    let state = inode.read();
    check_kind(volume, &state)?;
    let left = state.core.size.saturating_sub(offset);
    let mut len = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
    if len == 0 {
        return Ok((0, parts));
    }
    let (geometry, end) = (volume.geometry(), offset + len as u64);
    let extents = bmap::extents(volume, &state, ForkKind::Data)?;
    let last = FileBlock(geometry.blocks_for(end));
    let mut at = offset;
    while let Some(extent) = extents.first_in(FileBlock(at >> geometry.block_log), last) {
        if parts.len() == PLAN_MAX {
            // The next look goes on here.
            len = (at - offset) as usize;
            break;
        }
        let first = at.max(extent.offset.0 << geometry.block_log);
        let behind = byte_offset(geometry, extent.end(), end);
        bytes[(at - offset) as usize..(first - offset) as usize].fill(0);
        let range = (first - offset) as usize..(behind - offset) as usize;
        if extent.unwritten {
            bytes[range].fill(0);
        } else {
            parts.push(part(geometry, &extent, first, range));
        }
        at = behind;
        if at >= end {
            break;
        }
    }
    let tail = ((at - offset) as usize).min(len);
    bytes[tail..len].fill(0);
    if let Some(dirty) = &state.memory.dirty {
        dirty.overlay(offset, &mut bytes[..len], |copied| {
            let copied = (copied.start - offset) as usize..(copied.end - offset) as usize;
            parts = leave_out(geometry, std::mem::take(&mut parts), &copied);
        });
    }
    Ok((len, parts))
}

/// Reads from a sector on, without the first bytes of it, from the device.
fn fetch(
    volume: &Volume,
    mut sector: Sector,
    mut skipped: usize,
    mut bytes: &mut [u8],
) -> Result<(), Error> {
    let unit = volume.geometry().sector_size();
    let device = volume.cache().device().as_ref();
    while !bytes.is_empty() {
        let wanted = bytes.len().min(CHUNK_BYTES - skipped);
        let len = (skipped + wanted).next_multiple_of(unit);
        let mut memory = SPARE.take().unwrap_or_else(|| Buffer::zeroed(CHUNK_BYTES));
        let unused = memory.split_off(len);
        let mut memory = read_into(device, sector, memory)?;
        let (front, rest) = bytes.split_at_mut(wanted);
        front.copy_from_slice(&memory[skipped..skipped + wanted]);
        if memory.rejoin(unused).is_ok() {
            SPARE.set(Some(memory));
        }
        bytes = rest;
        sector = Sector(sector.0 + ((skipped + wanted) / 512) as u64);
        skipped = 0;
    }
    Ok(())
}

/// As [`fetch`], of a part of `memory`; without a copy if the part begins where a device takes memory.
fn fetch_whole(volume: &Volume, part: Part, mut memory: Buffer) -> Result<Buffer, Error> {
    let Part { sector, skipped, range } = part;
    // The last sector may have more than is wanted, for which there must be room.
    let whole = range.start + range.len().next_multiple_of(volume.geometry().sector_size());
    let fits = range.start.is_multiple_of(BUFFER_ALIGNMENT) && whole <= memory.len();
    if skipped > 0 || !fits {
        fetch(volume, sector, skipped, &mut memory[range])?;
        return Ok(memory);
    }
    let behind = memory.split_off(whole);
    let here = memory.split_off(range.start);
    let here = read_into(volume.cache().device().as_ref(), sector, here)?;
    for part in [here, behind] {
        memory.rejoin(part).expect("it was cut off there");
    }
    Ok(memory)
}

/// `len` bytes of a file from `byte` on, which lie in `extent`. The data of the file is locked.
pub(super) fn read_extent(
    volume: &Volume,
    extent: &Extent,
    byte: u64,
    len: usize,
) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; len];
    let part = part(volume.geometry(), extent, byte, 0..len);
    fetch(volume, part.sector, part.skipped, &mut bytes)?;
    Ok(bytes)
}

/// The byte ranges of a regular file that hold data: ascending, within the size of the file, not
/// touching each other.
///
/// # Errors
/// The mapping is damaged, or the device failed.
pub fn data_ranges(volume: &Volume, inode: &InodeState) -> Result<Vec<Range<u64>>, Error> {
    let (geometry, size) = (volume.geometry(), inode.core.size);
    let extents = bmap::extents(volume, inode, ForkKind::Data)?.as_slice();
    let stored = extents.iter().filter(|extent| !extent.unwritten);
    let mut blocks: Vec<_> = stored.map(|extent| (extent.offset, extent.end())).collect();
    if let Some(dirty) = &inode.memory.dirty {
        let dirty = dirty.ranges(0..geometry.blocks_for(size));
        blocks.extend(dirty.map(|range| (FileBlock(range.start), FileBlock(range.end))));
        blocks.sort_unstable();
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for (start, end) in blocks {
        let start = byte_offset(geometry, start, size);
        let end = byte_offset(geometry, end, size);
        match ranges.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ if start < end => ranges.push(start..end),
            _ => {}
        }
    }
    Ok(ranges)
}

/// The target of a symbolic link.
///
/// # Errors
/// The inode is something else, the target is damaged, or the device failed.
pub fn read_link(volume: &Volume, inode: &InodeState) -> Result<Vec<u8>, Error> {
    inode.expect_in_use()?;
    if inode.file_type() != FileType::Symlink {
        let (path, kind) = (format!("inode {}", inode.number), ErrorKind::Invalid);
        return Err(Error::WrongKind { path, what: "not a symbolic link", kind });
    }
    if let ForkContent::Local(target) = &inode.data.content {
        return Ok(target.clone());
    }
    symlink::read(&mut ForkReader::new(volume, inode, ForkKind::Data))
}

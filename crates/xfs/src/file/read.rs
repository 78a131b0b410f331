//! Reading the data of files.
//!
//! A read looks at the mapping under the lock of the inode, takes dirty data from memory there, and
//! lets the lock go; then it reads from the device. Meanwhile the blocks stay the file's
//! ([`FileLocks::use_blocks`]). The device reads into memory that the thread uses again and again,
//! from where bytes are copied once, while the processor still has them.

use super::OpenFile;
use super::kind::check_kind;
use crate::bmap::{self, ForkReader};
use crate::error::{Error, ErrorKind};
use crate::format::{Extent, FileType};
use crate::geometry::Geometry;
use crate::inode::{FileLocks, ForkContent, ForkKind, Inode, InodeState};
use crate::symlink;
use crate::units::FileBlock;
use crate::volume::Volume;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use undercroft_block::{Buffer, Sector, read_into};

/// Longest single read from the device: what a processor's cache holds beside other things.
const CHUNK_BYTES: usize = 256 << 10;

/// Extents that one look at the mapping takes.
const PLAN_MAX: usize = 32;

thread_local! {
    /// Memory for reads of this thread: [`CHUNK_BYTES`], once there was one.
    static SPARE: Cell<Option<Buffer>> = const { Cell::new(None) };
}

impl OpenFile {
    /// Fills `bytes` with the content of the file from `offset` on; returns how many bytes that
    /// were: fewer than asked for at the end of the file, 0 behind it. Ranges that are not stored
    /// read as zeros. Bytes behind those are left as they are.
    ///
    /// # Errors
    /// It is no regular file; the mapping is damaged; the device failed.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        read(&self.volume, &self.inode, &self.locks, offset, bytes)
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

/// A part of a read that is stored.
struct Part {
    sector: Sector,
    /// Bytes of the first sector that are not wanted.
    skipped: usize,
    /// Its place in the caller's memory.
    range: Range<usize>,
}

/// As [`OpenFile::read`], of an inode in memory. The caller holds no lock of it.
pub(super) fn read(
    volume: &Volume,
    inode: &Inode,
    locks: &FileLocks,
    offset: u64,
    bytes: &mut [u8],
) -> Result<usize, Error> {
    let mut done = 0;
    while done < bytes.len() {
        let _in_use = locks.use_blocks();
        let at = offset.saturating_add(done as u64);
        let (planned, parts) = plan(volume, inode, at, &mut bytes[done..])?;
        for part in &parts {
            fetch(volume, part, &mut bytes[done..][part.range.clone()])?;
        }
        done += planned;
        if planned == 0 {
            break;
        }
    }
    Ok(done)
}

/// Looks where the front of a range is, and fills in what needs no device. Returns how many bytes
/// that answers, and those of them that are to be read.
fn plan(
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

/// The part of an extent from the byte `first` of the file on, which goes to `range`.
fn part(geometry: &Geometry, extent: &Extent, first: u64, range: Range<usize>) -> Part {
    let unit = geometry.sector_size() as u64;
    let inside = first - (extent.offset.0 << geometry.block_log);
    // Less than a sector.
    let skipped = (inside % unit) as usize;
    let sector = Sector(geometry.sector(extent.start).0 + (inside - skipped as u64) / 512);
    Part { sector, skipped, range }
}

/// The parts left to be read when a range of them came from memory. Both ends of such a range are
/// those of blocks, or of the read.
fn leave_out(
    geometry: &Geometry,
    parts: SmallVec<[Part; 4]>,
    copied: &Range<usize>,
) -> SmallVec<[Part; 4]> {
    let mut left = SmallVec::new();
    for part in parts {
        let Part { sector, skipped, range } = part;
        let front = range.start..range.end.min(copied.start);
        let back = range.start.max(copied.end)..range.end;
        if !front.is_empty() {
            left.push(Part { sector, skipped, range: front });
        }
        if !back.is_empty() {
            let inside = skipped + (back.start - range.start);
            let skipped = inside % geometry.sector_size();
            let sector = Sector(sector.0 + ((inside - skipped) / 512) as u64);
            left.push(Part { sector, skipped, range: back });
        }
    }
    left
}

/// Reads a part from the device.
fn fetch(volume: &Volume, part: &Part, mut bytes: &mut [u8]) -> Result<(), Error> {
    let unit = volume.geometry().sector_size();
    let device = volume.cache().device().as_ref();
    let (mut sector, mut skipped) = (part.sector, part.skipped);
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

/// `len` bytes of a file from `byte` on, which lie in `extent`. The data of the file is locked.
pub(super) fn read_extent(
    volume: &Volume,
    extent: &Extent,
    byte: u64,
    len: usize,
) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; len];
    let part = part(volume.geometry(), extent, byte, 0..len);
    fetch(volume, &part, &mut bytes)?;
    Ok(bytes)
}

/// Offset of a block in bytes, or `end` if that is less.
fn byte_offset(geometry: &Geometry, block: FileBlock, end: u64) -> u64 {
    // Mappings may lie beyond what a number of bytes can express.
    if block.0 >= geometry.blocks_for(end) { end } else { block.0 << geometry.block_log }
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

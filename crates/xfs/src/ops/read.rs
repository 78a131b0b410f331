//! Contents of files.

use crate::bmap::{self, ForkReader};
use crate::error::{Error, ErrorKind};
use crate::format::{Extent, FileType, InodeFlags};
use crate::geometry::Geometry;
use crate::inode::{ForkContent, ForkKind, InodeState};
use crate::symlink;
use crate::units::FileBlock;
use crate::volume::Volume;
use std::ops::Range;
use undercroft_block::{Buffer, Sector, read_buffer};

/// Longest single read from the device.
const CHUNK_BYTES: u64 = 1 << 20;

/// A part of a file.
#[derive(Debug)]
pub enum Piece {
    /// Bytes that are stored.
    Data {
        /// Offset in the file.
        offset: u64,
        /// The bytes; the last ones may lie behind the end of the file.
        buffer: Buffer,
        /// How many of them belong to the file.
        len: usize,
    },
    /// Bytes that are not stored, or allocated but never written; they read as zeros.
    Hole {
        /// Offset in the file.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
}

/// Reads a regular file piece by piece.
#[derive(Debug)]
pub struct FileReader<'a> {
    volume: &'a Volume,
    inode: &'a InodeState,
    next: u64,
}

impl<'a> FileReader<'a> {
    /// A reader at the start of a regular file.
    ///
    /// # Errors
    /// The inode is something else, or its data is on a realtime device.
    pub fn new(volume: &'a Volume, inode: &'a InodeState) -> Result<Self, Error> {
        expect_regular(inode)?;
        if inode.core.flags.contains(InodeFlags::REALTIME) && inode.core.size > 0 {
            return Err(Error::WrongKind {
                path: format!("inode {}", inode.number),
                what: "its data is on a realtime device",
                kind: ErrorKind::NotSupported,
            });
        }
        Ok(Self { volume, inode, next: 0 })
    }

    /// The next piece, or `None` at the end of the file.
    ///
    /// # Errors
    /// The mapping is damaged, or the device failed.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, Error> {
        let (size, offset) = (self.inode.core.size, self.next);
        if offset >= size {
            return Ok(None);
        }
        let block_size = self.volume.geometry().block_size() as u64;
        let limit = match self.dirty_piece(offset) {
            Some(dirty) if dirty.start <= offset => return Ok(Some(self.copy_dirty(dirty.end))),
            Some(dirty) => dirty.start,
            None => size,
        };
        let geometry = self.volume.geometry();
        let block = FileBlock(offset >> geometry.block_log);
        let extents = bmap::extents(self.volume, self.inode, ForkKind::Data)?;
        let found = extents.at_or_after(block);
        let Some(extent) = found.filter(|extent| extent.offset <= block && !extent.unwritten)
        else {
            let end = match found {
                // Unwritten space is a hole to a reader.
                Some(extent) if extent.offset <= block => byte_offset(geometry, extent.end(), size),
                Some(extent) => byte_offset(geometry, extent.offset, size),
                None => size,
            };
            let end = end.min(limit);
            self.next = end;
            return Ok(Some(Piece::Hole { offset, len: end - offset }));
        };
        // Blocks behind the end of the file are not read.
        let end = extent.end().0.min(geometry.blocks_for(size));
        let left = (end << geometry.block_log) - offset;
        // Dirty data begins with a block, or there is none.
        let read = left.min(CHUNK_BYTES).min((limit - offset).next_multiple_of(block_size));
        let start = crate::units::FsBlock(extent.start.0 + (block.0 - extent.offset.0));
        let device = self.volume.cache().device().as_ref();
        // At most a megabyte.
        let buffer = read_buffer(device, geometry.sector(start), read as usize)?;
        let len = read.min(size - offset);
        self.next = offset + len;
        Ok(Some(Piece::Data { offset, buffer, len: len as usize }))
    }

    /// Bytes of the first piece of dirty data that ends behind `offset`, within the file.
    fn dirty_piece(&self, offset: u64) -> Option<Range<u64>> {
        let dirty = self.inode.dirty.as_ref()?;
        let (geometry, size) = (self.volume.geometry(), self.inode.core.size);
        let blocks = offset >> geometry.block_log..geometry.blocks_for(size);
        let piece = dirty.ranges(blocks).next()?;
        Some(piece.start << geometry.block_log..size.min(piece.end << geometry.block_log))
    }

    /// A copy of dirty data from here to `end`, or as much of it as is good for a piece.
    fn copy_dirty(&mut self, end: u64) -> Piece {
        let offset = self.next;
        let len = (end - offset).min(CHUNK_BYTES) as usize;
        let mut buffer = Buffer::zeroed(len);
        if let Some(dirty) = &self.inode.dirty {
            dirty.overlay(offset, &mut buffer);
        }
        self.next += len as u64;
        Piece::Data { offset, buffer, len }
    }
}

/// Refuses what is no regular file.
pub(crate) fn expect_regular(inode: &InodeState) -> Result<(), Error> {
    inode.expect_in_use()?;
    let kind = match inode.file_type() {
        FileType::Regular => return Ok(()),
        FileType::Directory => ErrorKind::IsDirectory,
        _ => ErrorKind::Invalid,
    };
    let path = format!("inode {}", inode.number);
    Err(Error::WrongKind { path, what: "not a regular file", kind })
}

/// Fills `bytes` with what a regular file holds from `offset` on; what is not stored, or lies behind
/// its end, reads as zeros.
///
/// # Errors
/// The mapping is damaged, or the device failed.
pub fn read_at(
    volume: &Volume,
    inode: &InodeState,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(), Error> {
    bytes.fill(0);
    let geometry = volume.geometry();
    let end = offset.saturating_add(bytes.len() as u64).min(inode.core.size);
    let mut at = offset;
    while at < end {
        let block = FileBlock(at >> geometry.block_log);
        let last = FileBlock(geometry.blocks_for(end));
        let extents = bmap::extents(volume, inode, ForkKind::Data)?;
        let Some(extent) = extents.first_in(block, last) else { break };
        let (first, behind) = (extent.offset.0 << geometry.block_log, extent.end().0);
        let (first, behind) = (at.max(first), end.min(behind << geometry.block_log));
        if !extent.unwritten {
            let content = read_extent(volume, &extent, first, (behind - first) as usize)?;
            let start = (first - offset) as usize;
            bytes[start..start + content.len()].copy_from_slice(&content);
        }
        at = behind;
    }
    if let Some(dirty) = inode.dirty.as_ref().filter(|_| offset < end) {
        dirty.overlay(offset, &mut bytes[..(end - offset) as usize]);
    }
    Ok(())
}

/// `len` bytes of a file from `byte` on, which lie in `extent`.
pub(super) fn read_extent(
    volume: &Volume,
    extent: &Extent,
    byte: u64,
    len: usize,
) -> Result<Vec<u8>, Error> {
    let geometry = volume.geometry();
    let unit = geometry.sector_size();
    let inside = byte - (extent.offset.0 << geometry.block_log);
    let skipped = (inside % unit as u64) as usize;
    let sector = geometry.sector(extent.start).0 + (inside - skipped as u64) / 512;
    let wanted = (skipped + len).next_multiple_of(unit);
    let buffer = read_buffer(volume.cache().device().as_ref(), Sector(sector), wanted)?;
    Ok(buffer[skipped..skipped + len].to_vec())
}

/// Offset of a block in bytes, or the size of the file if that is less.
fn byte_offset(geometry: &Geometry, block: FileBlock, size: u64) -> u64 {
    // Mappings may lie beyond what a number of bytes can express.
    if block.0 >= geometry.blocks_for(size) { size } else { block.0 << geometry.block_log }
}

/// The byte ranges of a regular file that [`FileReader`] delivers as data: ascending, within the
/// size of the file, not touching each other.
///
/// # Errors
/// The mapping is damaged, or the device failed.
pub fn data_ranges(volume: &Volume, inode: &InodeState) -> Result<Vec<Range<u64>>, Error> {
    let (geometry, size) = (volume.geometry(), inode.core.size);
    let extents = bmap::extents(volume, inode, ForkKind::Data)?.as_slice();
    let stored = extents.iter().filter(|extent| !extent.unwritten);
    let mut blocks: Vec<_> = stored.map(|extent| (extent.offset, extent.end())).collect();
    if let Some(dirty) = &inode.dirty {
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

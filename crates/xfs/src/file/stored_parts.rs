//! Parts of a file's data that are on the device.

use crate::bmap;
use crate::error::Error;
use crate::format::Extent;
use crate::geometry::Geometry;
use crate::inode::{ForkKind, InodeState};
use crate::units::FileBlock;
use crate::volume::Volume;
use smallvec::SmallVec;
use std::ops::Range;
use undercroft_block::Sector;

/// A part of a read that is stored.
pub(super) struct Part {
    pub(super) sector: Sector,
    /// Bytes of the first sector that are not wanted.
    pub(super) skipped: usize,
    /// Its place in the caller's memory.
    pub(super) range: Range<usize>,
}

impl Part {
    /// The rest behind the first `len` bytes.
    pub(super) fn behind(self, len: usize, unit: usize) -> Self {
        let inside = self.skipped + len;
        let skipped = inside % unit;
        let sector = Sector(self.sector.0 + ((inside - skipped) / 512) as u64);
        Self { sector, skipped, range: self.range.start + len..self.range.end }
    }
}

/// The parts of a range of bytes of a file that are on the device, each with its bytes of the file.
/// The file has nothing in memory alone.
pub(super) fn stored_parts(
    volume: &Volume,
    state: &InodeState,
    range: Range<u64>,
) -> Result<Vec<(Range<u64>, Part)>, Error> {
    let (geometry, end) = (volume.geometry(), range.end.min(state.core.size));
    let extents = bmap::extents(volume, state, ForkKind::Data)?;
    let (mut at, last) = (range.start, FileBlock(geometry.blocks_for(end)));
    let mut parts = Vec::new();
    while at < end
        && let Some(extent) = extents.first_in(FileBlock(at >> geometry.block_log), last)
    {
        let first = at.max(extent.offset.0 << geometry.block_log);
        at = byte_offset(geometry, extent.end(), end);
        if !extent.unwritten {
            parts.push((first..at, part(geometry, &extent, first, 0..0)));
        }
    }
    Ok(parts)
}

/// The part of an extent from the byte `first` of the file on, which goes to `range`.
pub(super) fn part(geometry: &Geometry, extent: &Extent, first: u64, range: Range<usize>) -> Part {
    let unit = geometry.sector_size() as u64;
    let inside = first - (extent.offset.0 << geometry.block_log);
    // Less than a sector.
    let skipped = (inside % unit) as usize;
    let sector = Sector(geometry.sector(extent.start).0 + (inside - skipped as u64) / 512);
    Part { sector, skipped, range }
}

/// The parts left to be read when a range of them came from memory. Both ends of such a range are
/// those of blocks, or of the read.
pub(super) fn leave_out(
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
            let len = back.start - range.start;
            left.push(Part { sector, skipped, range }.behind(len, geometry.sector_size()));
        }
    }
    left
}

/// Offset of a block in bytes, or `end` if that is less.
pub(super) fn byte_offset(geometry: &Geometry, block: FileBlock, end: u64) -> u64 {
    // Mappings may lie beyond what a number of bytes can express.
    if block.0 >= geometry.blocks_for(end) { end } else { block.0 << geometry.block_log }
}

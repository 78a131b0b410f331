//! The changes of a repair brought to the device: all of them, or none.

use std::ops::Range;

use undercroft_block::Sector;
use undercroft_xfs::format::{BufferKind, Geometry, Header, Superblock};
use undercroft_xfs::recovery::{BlockImage, images_size};
use undercroft_xfs::units::{AgBlock, AgNumber};

use crate::error::RepairError;
use crate::scratch::Scratch;

/// The sectors of the journal.
pub(crate) fn journal(geometry: &Geometry) -> Range<u64> {
    let start = geometry.sector(geometry.log_start).0;
    start..start + (u64::from(geometry.log_blocks) << (geometry.block_log - 9))
}

/// A block, or the header of a group, that is to change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    sector: Sector,
    len: usize,
    /// A header of a group.
    header: Option<BufferKind>,
}

impl Piece {
    /// Where it begins.
    pub(crate) const fn sector(&self) -> Sector {
        self.sector
    }

    /// Its sectors.
    pub(crate) const fn sectors(&self) -> Range<u64> {
        self.sector.0..self.sector.0 + self.len as u64 / 512
    }

    /// Bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

/// The blocks that are to change, each whole.
pub(crate) fn pieces(scratch: &Scratch, geometry: &Geometry) -> Result<Vec<Piece>, RepairError> {
    Ok(pieces_of(geometry, scratch.differences(&journal(geometry))?))
}

/// The blocks, or headers of groups, that sectors are of; these ascend.
pub(crate) fn pieces_of(geometry: &Geometry, sectors: Vec<u64>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut done = 0;
    for sector in sectors {
        if sector >= done {
            let piece = piece(geometry, sector);
            done = piece.sector.0 + (piece.len / 512) as u64;
            pieces.push(piece);
        }
    }
    pieces
}

/// The block, or the header of a group, that a sector is of.
fn piece(geometry: &Geometry, sector: u64) -> Piece {
    const HEADERS: [BufferKind; 4] =
        [BufferKind::Superblock, BufferKind::Agf, BufferKind::Agi, BufferKind::Agfl];
    let per_block = u64::from(geometry.sectors_per_block());
    let group = u64::from(geometry.ag_blocks) * per_block;
    let (ag, offset) = (sector / group, sector % group);
    let per_sector = geometry.sector_size() as u64 / 512;
    let header = (offset / per_sector) as usize;
    if header < HEADERS.len() && ag < geometry.ag_count.into() {
        let sector = Sector(ag * group + header as u64 * per_sector);
        return Piece { sector, len: geometry.sector_size(), header: Some(HEADERS[header]) };
    }
    let block = offset / per_block;
    let sector = geometry.ag_sector(AgNumber(ag as u32), AgBlock(block as u32));
    Piece { sector, len: geometry.block_size(), header: None }
}

/// A piece as it is to be.
pub(crate) fn image(
    scratch: &Scratch,
    geometry: &Geometry,
    piece: &Piece,
) -> Result<BlockImage, RepairError> {
    let sector = piece.sector;
    let bytes = scratch.read(sector, piece.len)?;
    let kind = match piece.header {
        Some(kind) => {
            let is_own = Header::of(kind).is_some_and(|header| header.has_magic(&bytes));
            is_own.then_some(kind)
        }
        None => kind(geometry, sector, &bytes),
    };
    Ok(BlockImage { sector, kind, bytes })
}

/// What a block says that it is, if all of it is this block.
fn kind(geometry: &Geometry, sector: Sector, bytes: &[u8]) -> Option<BufferKind> {
    if bytes.starts_with(b"IN") {
        return Some(BufferKind::InodeCluster);
    }
    let kind = BufferKind::of_block(bytes)?;
    let header = Header::of(kind)?;
    let is_whole = header.verify(bytes, sector, &geometry.meta_uuid, geometry.block_size()).is_ok();
    is_whole.then_some(kind)
}

/// Whether pieces have sectors that cannot be read: recovery reads a block before it changes it.
pub(crate) fn is_unreadable(scratch: &Scratch, pieces: &[Piece]) -> bool {
    let ends = |piece: &Piece| piece.sector.0..piece.sector.0 + (piece.len / 512) as u64;
    pieces.iter().any(|piece| scratch.unreadable(ends(piece)) > 0)
}

/// Bytes of the journal that pieces take.
pub(crate) fn size(superblock: &Superblock, pieces: &[Piece]) -> usize {
    images_size(superblock, pieces.iter().map(|piece| piece.len))
}

/// Whether the changes fit the journal.
pub(crate) fn fits(superblock: &Superblock, pieces: &[Piece]) -> bool {
    let geometry = superblock.geometry();
    let journal = journal(&geometry);
    (size(superblock, pieces) as u64) < (journal.end - journal.start) * 512 / 4 * 3
}

/// Sectors that ascend as ranges.
pub(crate) fn ranges(sectors: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for sector in sectors {
        match ranges.last_mut().filter(|last| last.end == *sector) {
            Some(last) => last.end += 1,
            None => ranges.push(*sector..*sector + 1),
        }
    }
    ranges
}

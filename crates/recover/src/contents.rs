//! The bytes of a file that was found.

use std::ops::Range;

use undercroft_block::{Buffer, Sector, read_buffer};
use undercroft_xfs_format::Extent;

use crate::content::Content;
use crate::disk::Disk;
use crate::error::RecoverError;
use crate::found::FoundFile;

/// Bytes read at a time.
const PIECE: u64 = 1 << 20;

/// Bytes read at a time where a piece cannot be read, as the scan does it.
const SMALL: u64 = 4 << 10;

/// A piece of the data of a file.
#[derive(Debug)]
pub struct Piece {
    /// Where in the file it starts, in bytes.
    pub offset: u64,
    /// Whole blocks, of which the first [`len`](Self::len) bytes are the file's.
    buffer: Buffer,
    len: usize,
}

impl Piece {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

/// The next of the data of a file, as far as it can be read.
#[derive(Debug)]
pub enum Part {
    /// Data.
    Piece(Piece),
    /// Bytes of the file that the device could not read, though it could when the volume was looked through, or
    /// was not asked for them then.
    Unread(Range<u64>),
}

/// The data of a file that was found, read piece by piece from where it lies. What is lost of it is not
/// delivered: other files' data is there.
#[derive(Clone)]
pub struct Contents {
    disk: Disk,
    /// Ranges of the file with data, and the sector of each.
    parts: Vec<(Range<u64>, u64)>,
    /// The next part, and how much of it was delivered.
    next: (usize, u64),
    /// Up to here it is read in small pieces: a byte of the file.
    small_until: u64,
}

impl Contents {
    /// The data of `file`, found on `disk`.
    #[must_use]
    pub fn new(disk: &Disk, file: &FoundFile) -> Self {
        let extents: &[Extent] = match &file.content {
            Content::Map(map) => &map.extents,
            _ => &[],
        };
        let log = disk.geometry.block_log;
        let mut parts = Vec::new();
        for extent in extents.iter().filter(|extent| !extent.unwritten) {
            let start = extent.offset.0 << log;
            let end = (extent.end().0 << log).min(file.size);
            let first = disk.geometry.sector(extent.start).0;
            for range in without_losses(start..end, &file.losses) {
                let sector = first + (range.start - start) / 512;
                parts.push((range, sector));
            }
        }
        Self { disk: disk.clone(), parts, next: (0, 0), small_until: 0 }
    }

    /// Where data is, as bytes of the file, in ascending order, none touching the next; what lies
    /// between is a hole, or lost.
    #[must_use]
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (range, _) in &self.parts {
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range.clone()),
            }
        }
        ranges
    }

    /// Where data is, as bytes of the file, in ascending order, and the sector of the volume with which each
    /// range begins.
    pub fn places(&self) -> impl Iterator<Item = (Range<u64>, Sector)> {
        self.parts.iter().map(|(range, sector)| (range.clone(), Sector(*sector)))
    }

    /// Goes on with the block of the file that has this byte, or with the data behind it.
    pub fn seek(&mut self, offset: u64) {
        let part = self.parts.partition_point(|(range, _)| range.end <= offset);
        let start = self.parts.get(part).map_or(0, |(range, _)| range.start);
        let log = self.disk.geometry.block_log;
        self.next = (part, offset.saturating_sub(start) >> log << log);
    }

    /// The next piece, in ascending order; `None` at the end.
    ///
    /// # Errors
    /// The device failed.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, RecoverError> {
        let Some((piece, _)) = self.read(PIECE) else { return Ok(None) };
        let piece = piece?;
        self.advance(piece.len as u64);
        Ok(Some(piece))
    }

    /// As [`next_piece`](Self::next_piece), but what cannot be read does not end it: a piece that cannot be is
    /// read in small ones, and those of them that cannot be are told in their place.
    pub fn next_part(&mut self) -> Option<Part> {
        let (range, _) = self.parts.get(self.next.0)?;
        let offset = range.start + self.next.1;
        let small = SMALL.max(self.disk.geometry.block_size() as u64);
        let most = if offset < self.small_until { small } else { PIECE };
        let (read, bytes) = self.read(most)?;
        match read {
            Ok(piece) => {
                self.advance(bytes.end - bytes.start);
                Some(Part::Piece(piece))
            }
            Err(_) if most > small => {
                self.small_until = bytes.end;
                self.next_part()
            }
            Err(_) => {
                self.advance(bytes.end - bytes.start);
                Some(Part::Unread(bytes))
            }
        }
    }

    /// Reads at most so many of the next bytes, which are told as well.
    fn read(&self, most: u64) -> Option<(Result<Piece, RecoverError>, Range<u64>)> {
        let (range, sector) = self.parts.get(self.next.0)?;
        let offset = range.start + self.next.1;
        let len = (range.end - offset).min(most);
        // Whole blocks: the file may end inside of one.
        let whole = (len as usize).next_multiple_of(self.disk.geometry.block_size());
        let at = Sector(sector + self.next.1 / 512);
        let read = read_buffer(self.disk.present.as_ref(), at, whole);
        let piece = read.map(|buffer| Piece { offset, buffer, len: len as usize });
        Some((piece.map_err(RecoverError::from), offset..offset + len))
    }

    /// Goes on behind so many bytes of the next part.
    fn advance(&mut self, bytes: u64) {
        self.next.1 += bytes;
        let is_done = |(range, _): &(Range<u64>, u64)| range.start + self.next.1 == range.end;
        if self.parts.get(self.next.0).is_some_and(is_done) {
            self.next = (self.next.0 + 1, 0);
        }
    }
}

/// The parts of a range that are not lost. Losses begin with a block.
fn without_losses(range: Range<u64>, losses: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let mut at = range.start;
    for loss in losses {
        if loss.end <= at || loss.start >= range.end {
            continue;
        }
        parts.push(at..loss.start.max(at));
        at = loss.end.min(range.end);
    }
    parts.push(at..range.end.max(at));
    parts.retain(|part| !part.is_empty());
    parts
}

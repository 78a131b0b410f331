//! A file with the grains of an extent, as they are or compressed.

use crate::blocks::Blocks;
use crate::disk::{Disk, Stored, by_blocks, invalid};
use crate::field::{le32, le64};
use crate::inflate::{Wrapping, inflate};
use crate::obstacle::{Obstacle, damaged, not_supported};
use std::io;

pub(super) const MAGIC: &[u8; 4] = b"KDMV";

const SECTOR: u64 = super::SECTOR;
/// The directory is said by a copy of the header, before the last sector.
const AT_END: u64 = u64::MAX;
const HEADER: usize = 79;

/// Flags: bytes that a transfer as text would change; a word for grains of zeroes; compressed; with markers.
const CHECKS_LINES: u32 = 1;
const HAS_ZEROES: u32 = 1 << 2;
const COMPRESSED: u32 = 1 << 16;
const MARKERS: u32 = 1 << 17;
const KNOWN: u32 = CHECKS_LINES | 2 | HAS_ZEROES | COMPRESSED | MARKERS;

/// Bytes of a grain.
const GRAIN_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=16 << 20;
/// Entries of a table.
const ENTRIES: std::ops::RangeInclusive<u64> = 1..=1 << 16;
/// Bytes before a compressed grain: its sector, its length.
const MARKER: u64 = 12;

/// An extent of grains.
pub(super) struct Sparse {
    stored: Stored,
    bytes: u64,
    grain_bytes: u64,
    /// Entries of a table of grains.
    entries: u64,
    directory_at: u64,
    has_zeroes: bool,
    is_compressed: bool,
    /// Place and length of the text in it.
    text: (u64, u64),
    blocks: Blocks,
}

impl Sparse {
    pub(super) fn open(stored: Stored) -> Result<Self, Obstacle> {
        let mut header: [u8; HEADER] = stored.array(0)?;
        let text = (le64(&header, 28), le64(&header, 36));
        if le64(&header, 56) == AT_END {
            let at = stored.length().saturating_sub(2 * SECTOR) / SECTOR * SECTOR;
            header = stored.array(at)?;
        }
        if !header.starts_with(MAGIC) {
            return damaged("the header is not there, or not that at the end; is it cut?");
        }
        let flags = le32(&header, 8);
        if !(1..=3).contains(&le32(&header, 4)) || flags & !KNOWN != 0 {
            return not_supported("features of a newer VMware");
        }
        if flags & CHECKS_LINES != 0 && header[73..77] != *b"\n \r\n" {
            return damaged("ends of lines were changed in it, as a transfer of text does");
        }
        let is_compressed = flags & COMPRESSED != 0;
        if is_compressed && u16::from_le_bytes([header[77], header[78]]) != 1 {
            return not_supported("a compression other than deflate");
        }
        let bytes = le64(&header, 12).checked_mul(SECTOR);
        let grain_bytes = le64(&header, 20).saturating_mul(SECTOR);
        let entries = u64::from(le32(&header, 44));
        if !GRAIN_BYTES.contains(&grain_bytes) || !grain_bytes.is_power_of_two() {
            return damaged(format!("it has grains of {grain_bytes} bytes"));
        }
        if !ENTRIES.contains(&entries) {
            return damaged(format!("it has tables of {entries} grains"));
        }
        let Some(bytes) = bytes else { return damaged("it is too long") };
        let directory_at = le64(&header, 56).saturating_mul(SECTOR);
        let tables = bytes.div_ceil(grain_bytes * entries);
        if directory_at.checked_add(4 * tables).is_none_or(|end| end > stored.length()) {
            return damaged("the directory of grains ends behind the file; is it cut?");
        }
        let (has_zeroes, blocks) = (flags & HAS_ZEROES != 0, Blocks::default());
        Ok(Self {
            stored,
            bytes,
            grain_bytes,
            entries,
            directory_at,
            has_zeroes,
            is_compressed,
            text,
            blocks,
        })
    }

    /// The text in it, if it has one.
    pub(super) fn text(&self) -> Result<Option<Vec<u8>>, Obstacle> {
        let (first, sectors) = self.text;
        if first == 0 || sectors == 0 {
            return Ok(None);
        }
        let length = sectors.saturating_mul(SECTOR);
        if length > super::MAX_TEXT.min(self.stored.length()) {
            return damaged(format!("its text has {length} bytes"));
        }
        let mut text = vec![0; length as usize];
        self.stored.fill(first.saturating_mul(SECTOR), &mut text)?;
        Ok(Some(text))
    }

    /// The place of a grain, if it has one.
    fn place(&self, grain: u64) -> io::Result<Option<u64>> {
        let entry = |at| self.stored.array(at).map(u32::from_le_bytes).map(u64::from);
        let table = entry(self.directory_at + 4 * (grain / self.entries))?;
        if table == 0 {
            return Ok(None);
        }
        let place = entry(table * SECTOR + 4 * (grain % self.entries))?;
        let is_zero = place == 0 || place == 1 && self.has_zeroes;
        Ok((!is_zero).then_some(place * SECTOR))
    }

    fn decompress(&self, at: u64, grain: u64) -> io::Result<Vec<u8>> {
        let marker: [u8; MARKER as usize] = self.stored.array(at)?;
        let (sector, length) = (le64(&marker, 0), u64::from(le32(&marker, 8)));
        if sector != grain * (self.grain_bytes / SECTOR) || length > 2 * self.grain_bytes {
            return Err(invalid(format!("the grain at byte {at} is another one")));
        }
        let mut packed = vec![0; length as usize];
        self.stored.fill(at + MARKER, &mut packed)?;
        inflate(&packed, self.grain_bytes as usize, Wrapping::Zlib)
            .map_err(|error| invalid(format!("the grain at byte {at}: {error}")))
    }
}

impl Disk for Sparse {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        by_blocks(at, memory, self.grain_bytes, |grain, offset, piece| {
            let Some(place) = self.place(grain)? else {
                piece.fill(0);
                return Ok(());
            };
            if !self.is_compressed {
                return self.stored.fill(place + offset, piece);
            }
            let block = self.blocks.get(place, || self.decompress(place, grain))?;
            // A grain has all its bytes.
            let offset = offset as usize;
            piece.copy_from_slice(&block[offset..offset + piece.len()]);
            Ok(())
        })
    }
}

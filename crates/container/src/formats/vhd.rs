//! VHD, of Virtual PC, Hyper-V and Azure: a footer, and for dynamic images a table of blocks.
//!
//! Fields: Microsoft's Virtual Hard Disk Image Format Specification. All numbers are big-endian.

use crate::disk::{Disk, Flat, Stored, by_blocks};
use crate::field::{be32, be64};
use crate::obstacle::{Obstacle, damaged, not_supported};
use std::io;

const FOOTER: u64 = 512;
const COOKIE: &[u8] = b"conectix";
const HEADER: usize = 1024;
const HEADER_COOKIE: &[u8] = b"cxsparse";
const FIXED: u32 = 2;
const DYNAMIC: u32 = 3;
const DIFFERENCING: u32 = 4;
const SECTOR: u64 = 512;
/// A block that is not there.
const NOT_THERE: u32 = u32::MAX;
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=256 << 20;

/// Whether a file begins as a dynamic image does, or ends as a fixed one of this length.
pub(super) fn is_one(start: &[u8], stored: &Stored) -> bool {
    start.starts_with(COOKIE) || fixed(stored).is_some()
}

/// The length of the disk in a fixed image. What begins as a disk has to fit in all fields.
fn fixed(stored: &Stored) -> Option<u64> {
    let at = stored.length().checked_sub(FOOTER)?;
    let footer: [u8; FOOTER as usize] = stored.array(at).ok()?;
    let is_one = is_sound(&footer) && be32(&footer, 60) == FIXED && be64(&footer, 48) == at;
    is_one.then_some(at)
}

fn is_sound(footer: &[u8]) -> bool {
    footer.starts_with(COOKIE) && checksum(footer, 64) == be32(footer, 64)
}

/// The sum of all bytes but those of the checksum itself, inverted.
fn checksum(bytes: &[u8], at: usize) -> u32 {
    let others = bytes[..at].iter().chain(&bytes[at + 4..]);
    !others.fold(0_u32, |sum, byte| sum.wrapping_add(u32::from(*byte)))
}

struct Dynamic {
    stored: Stored,
    bytes: u64,
    table_at: u64,
    block_bytes: u64,
    /// Bytes of the map of sectors before a block.
    map_bytes: u64,
}

pub(super) fn open(stored: Stored) -> Result<Box<dyn Disk>, Obstacle> {
    if let Some(bytes) = fixed(&stored) {
        return Ok(Box::new(Flat { stored, start: 0, bytes }));
    }
    // A copy is at the front; the last word has the one at the end.
    let end = stored.length().saturating_sub(FOOTER);
    let footers = [stored.array::<{ FOOTER as usize }>(end)?, stored.array(0)?];
    let Some(footer) = footers.iter().find(|footer| is_sound(*footer)) else {
        return damaged("neither footer has the right checksum");
    };
    match be32(footer, 60) {
        DYNAMIC | DIFFERENCING => {}
        FIXED => return damaged("it is fixed, and its length is not that of the disk"),
        other => return damaged(format!("it is of type {other}")),
    }
    let header: [u8; HEADER] = stored.array(be64(footer, 16))?;
    if !header.starts_with(HEADER_COOKIE) || checksum(&header, 36) != be32(&header, 36) {
        return damaged("the header of a dynamic disk is not there");
    }
    if be32(footer, 60) == DIFFERENCING {
        let name = header[64..576].as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair));
        let name: Vec<_> = name.take_while(|unit| *unit != 0).collect();
        let name = String::from_utf16_lossy(&name);
        return not_supported(format!(
            "only the changes to another one, \"{}\"",
            name.escape_debug()
        ));
    }
    let (bytes, block_bytes) = (be64(footer, 48), u64::from(be32(&header, 32)));
    if !BLOCK_BYTES.contains(&block_bytes) || !block_bytes.is_power_of_two() {
        return damaged(format!("it has blocks of {block_bytes} bytes"));
    }
    let (table_at, entries) = (be64(&header, 16), u64::from(be32(&header, 28)));
    if bytes.div_ceil(block_bytes) > entries {
        return damaged(format!("a disk of {bytes} bytes has {entries} blocks"));
    }
    if table_at.checked_add(4 * entries).is_none_or(|end| end > stored.length()) {
        return damaged("the table of blocks ends behind the file; is it cut?");
    }
    let map_bytes = (block_bytes / SECTOR / 8).next_multiple_of(SECTOR);
    Ok(Box::new(Dynamic { stored, bytes, table_at, block_bytes, map_bytes }))
}

impl Dynamic {
    fn read_block(&self, block: u64, offset: u64, piece: &mut [u8]) -> io::Result<()> {
        let place = u32::from_be_bytes(self.stored.array(self.table_at + 4 * block)?);
        if place == NOT_THERE {
            piece.fill(0);
            return Ok(());
        }
        let map_at = u64::from(place) * SECTOR;
        self.stored.fill(map_at + self.map_bytes + offset, piece)?;
        // A bit for each sector says whether it was ever written.
        let end = offset + piece.len() as u64;
        let first_byte = offset / SECTOR / 8;
        let mut map = vec![0; (end.div_ceil(SECTOR * 8) - first_byte) as usize];
        self.stored.fill(map_at + first_byte, &mut map)?;
        if map.iter().all(|byte| *byte == 0xff) {
            return Ok(());
        }
        by_blocks(offset, piece, SECTOR, |sector, _, bytes| {
            let byte = map[(sector / 8 - first_byte) as usize];
            if byte & 0x80 >> (sector % 8) == 0 {
                bytes.fill(0);
            }
            Ok(())
        })
    }
}

impl Disk for Dynamic {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        by_blocks(at, memory, self.block_bytes, |block, offset, piece| {
            self.read_block(block, offset, piece)
        })
    }
}

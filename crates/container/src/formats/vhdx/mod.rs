//! VHDX, of Hyper-V: two headers, two tables of regions, metadata, a table of blocks, a log.
//!
//! Fields: Microsoft's [MS-VHDX]. All numbers are little-endian. What a log has to bring to the tables is
//! brought in memory (`log`).

mod log;
mod view;

use crate::disk::{Disk, Stored, by_blocks, invalid};
use crate::field::{le32, le64};
use crate::obstacle::{Obstacle, damaged, not_supported};
use std::io;
use view::View;

const MAGIC: &[u8] = b"vhdxfile";
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const HEADERS: [u64; 2] = [64 * KIB, 128 * KIB];
const REGIONS: [u64; 2] = [192 * KIB, 256 * KIB];
const HEADER: usize = 4096;
/// Bytes of a table of regions, and of one of metadata.
const TABLE: usize = 64 << 10;
const MAX_ENTRIES: usize = 2047;
const ENTRY: usize = 32;

type Guid = [u8; 16];

const BLOCKS: Guid = guid(0x2dc2_7766_f623_4200_9d64_115e_9bfd_4a08);
const METADATA: Guid = guid(0x8b7c_a206_4790_4b9a_b8fe_575f_050f_886e);
const PARAMETERS: Guid = guid(0xcaa1_6737_fa36_4d43_b3b6_33f0_aa44_e76b);
const SIZE: Guid = guid(0x2fa5_4224_cd1b_4876_b211_5dbe_d83b_f4b8);
const SECTOR_BYTES: Guid = guid(0x8141_bf1d_a96f_4709_ba47_f233_a8fa_ab5f);
/// Items that say nothing about the place of data: the sectors of the device, its number, the parent.
const OTHERS: [Guid; 3] = [
    guid(0xcda3_48c7_445d_4471_9cc9_e988_5251_c556),
    guid(0xbeca_12ab_b2e6_4523_93ef_c309_e000_c746),
    guid(0xa8d3_5f2d_b30b_454d_abf7_d3d8_4834_ab0c),
];

/// A GUID as it is on a disk: the first three numbers of its text are little-endian.
const fn guid(text: u128) -> Guid {
    let b = text.to_be_bytes();
    [
        b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6], b[8], b[9], b[10], b[11], b[12], b[13],
        b[14], b[15],
    ]
}

/// Whether a file begins as such an image.
pub(super) fn is_one(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}

/// The checksum of a structure, with zeroes in the place of it.
fn checksum(bytes: &[u8]) -> u32 {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..4]), &[0; 4]);
    crc32c::crc32c_append(sum, &bytes[8..])
}

/// Whether a structure carries its mark and the checksum of its bytes.
fn is_sound(bytes: &[u8], mark: &[u8; 4]) -> bool {
    bytes.starts_with(mark) && checksum(bytes) == le32(bytes, 4)
}

pub(super) fn open(stored: Stored) -> Result<Box<dyn Disk>, Obstacle> {
    let mut headers = Vec::new();
    for at in HEADERS {
        let header: [u8; HEADER] = stored.array(at)?;
        if is_sound(&header, b"head") {
            headers.push(header);
        }
    }
    let Some(header) = headers.into_iter().max_by_key(|header| le64(header, 8)) else {
        return damaged("neither header has the right checksum");
    };
    if u16::from_le_bytes([header[66], header[67]]) != 1 {
        return not_supported("a version other than 1");
    }
    let is_dirty = header[48..64] != [0; 16];
    let view = if is_dirty { log::replay(stored, &header)? } else { View::new(stored) };
    let [blocks, metadata] = regions(&view)?;
    let Shape { bytes, block_bytes, sector_bytes } = shape(&view, metadata)?;
    if !(MIB..=256 * MIB).contains(&block_bytes) || !block_bytes.is_power_of_two() {
        return damaged(format!("it has blocks of {block_bytes} bytes"));
    }
    if ![512, 4096].contains(&sector_bytes) {
        return damaged(format!("it has sectors of {sector_bytes} bytes"));
    }
    // Behind so many blocks the table has a map of sectors.
    let chunk = (sector_bytes << 23) / block_bytes;
    let table_at = blocks.at;
    let disk = Vhdx { view, bytes, block_bytes, chunk, table_at };
    let last = bytes.div_ceil(block_bytes).saturating_sub(1);
    if bytes > 0 && disk.entry(last) + 8 > blocks.at + blocks.bytes {
        return damaged(format!("a disk of {bytes} bytes has a table that is too short"));
    }
    Ok(Box::new(disk))
}

#[derive(Clone, Copy)]
struct Region {
    at: u64,
    bytes: u64,
}

/// Where the table of blocks and the metadata are.
fn regions(view: &View) -> Result<[Region; 2], Obstacle> {
    let mut table = vec![0; TABLE];
    let mut is_there = false;
    for at in REGIONS {
        view.fill(at, &mut table)?;
        is_there = is_sound(&table, b"regi");
        if is_there {
            break;
        }
    }
    let count = le32(&table, 8) as usize;
    if !is_there || count > MAX_ENTRIES {
        return damaged("neither table of regions is sound");
    }
    let [mut blocks, mut metadata] = [None, None];
    for entry in table[16..].chunks_exact(ENTRY).take(count) {
        let region = Region { at: le64(entry, 16), bytes: u64::from(le32(entry, 24)) };
        let end = region.at.checked_add(region.bytes);
        match &entry[..16] {
            name if *name == BLOCKS => blocks = Some(region),
            name if *name == METADATA => metadata = Some(region),
            _ if le32(entry, 28) & 1 != 0 => return not_supported("regions of a newer version"),
            _ => continue,
        }
        if end.is_none_or(|end| end > view.length()) {
            return damaged("a region ends behind the file; is it cut?");
        }
    }
    match (blocks, metadata) {
        (Some(blocks), Some(metadata)) => Ok([blocks, metadata]),
        _ => damaged("the table of regions names no blocks or no metadata"),
    }
}

/// What the metadata says.
struct Shape {
    bytes: u64,
    block_bytes: u64,
    sector_bytes: u64,
}

fn shape(view: &View, region: Region) -> Result<Shape, Obstacle> {
    if region.bytes < TABLE as u64 {
        return damaged("the metadata is too short");
    }
    let mut table = vec![0; TABLE];
    view.fill(region.at, &mut table)?;
    let count = usize::from(u16::from_le_bytes([table[10], table[11]]));
    if !table.starts_with(b"metadata") || count > MAX_ENTRIES {
        return damaged("the table of metadata is not there");
    }
    let [mut bytes, mut block_bytes, mut sector_bytes] = [None; 3];
    for entry in table[32..].chunks_exact(ENTRY).take(count) {
        let word = || -> Result<[u8; 8], Obstacle> {
            // All that is read of an item, also of one that says it is longer.
            let mut word = [0; 8];
            view.fill(region.at.saturating_add(u64::from(le32(entry, 16))), &mut word)?;
            Ok(word)
        };
        match &entry[..16] {
            name if *name == SIZE => bytes = Some(u64::from_le_bytes(word()?)),
            name if *name == SECTOR_BYTES => sector_bytes = Some(u64::from(le32(&word()?, 0))),
            name if *name == PARAMETERS => {
                let word = word()?;
                if le32(&word, 4) & 2 != 0 {
                    return not_supported("only the changes to another one");
                }
                block_bytes = Some(u64::from(le32(&word, 0)));
            }
            name if OTHERS.iter().any(|other| name == other) => {}
            _ if le32(entry, 24) & 4 != 0 => return not_supported("metadata of a newer version"),
            _ => {}
        }
    }
    match (bytes, block_bytes, sector_bytes) {
        (Some(bytes), Some(block_bytes), Some(sector_bytes)) if bytes <= 64 << 40 => {
            Ok(Shape { bytes, block_bytes, sector_bytes })
        }
        (Some(bytes), Some(_), Some(_)) => damaged(format!("a disk of {bytes} bytes")),
        _ => damaged("the metadata does not say the size of the disk, its blocks or its sectors"),
    }
}

struct Vhdx {
    view: View,
    bytes: u64,
    block_bytes: u64,
    chunk: u64,
    table_at: u64,
}

impl Vhdx {
    /// Where the entry of a block is.
    fn entry(&self, block: u64) -> u64 {
        self.table_at + 8 * (block + block / self.chunk)
    }
}

impl Disk for Vhdx {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, at: u64, memory: &mut [u8]) -> io::Result<()> {
        by_blocks(at, memory, self.block_bytes, |block, offset, piece| {
            let mut word = [0; 8];
            self.view.fill(self.entry(block), &mut word)?;
            let entry = u64::from_le_bytes(word);
            match entry & 7 {
                // Not there, undefined, zeroes, given back.
                0..=3 => {
                    piece.fill(0);
                    Ok(())
                }
                // The low bits are none of the place, which is a multiple of a MiB.
                6 => self.view.fill((entry / MIB * MIB).saturating_add(offset), piece),
                state => Err(invalid(format!("block {block} is in state {state}"))),
            }
        })
    }
}

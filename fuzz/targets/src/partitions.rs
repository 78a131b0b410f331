//! Partition tables: GPT with its copy, MBR with its chain, entries made shorter.
//!
//! The input chooses a disk with a sound table and patches the first and last sectors of it; the
//! checksums of a GPT are repaired afterwards.

use crate::input::{Change, Input, Patches};
use std::sync::Arc;
use undercroft_block::partition::{PartitionTable, Shortening, open_partition};
use undercroft_block::{BlockDevice, MemoryDevice, Sector, write_all_at};

/// Bytes of the disk.
const DISK: usize = 256 * 512;
/// Bytes at each end that can be patched: boot record, header and entries, with blocks of both sizes.
const END: usize = 3 * 4096;
/// Partitions that are opened.
const OPENED: usize = 16;
/// Reads for one table: both copies, at most a mebibyte each, or a chain of extended records.
const BUDGET: u64 = 4 << 20;

/// The choices of the first byte.
mod flag {
    /// Checksums stay as they are.
    pub(super) const UNREPAIRED: u8 = 1;
    /// A boot record with a chain of extended ones, no GPT.
    pub(super) const BOOT_RECORD: u8 = 2;
    /// Blocks of 4096 bytes.
    pub(super) const LARGE_BLOCKS: u8 = 4;
    /// The GPT has a sound copy at the end of the disk.
    pub(super) const COPY: u8 = 8;
    /// The partitions are made shorter.
    pub(super) const SHORTEN: u8 = 16;
}

/// An input for each disk, and for each of them with its partitions made shorter.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    use flag::{BOOT_RECORD, COPY, LARGE_BLOCKS, SHORTEN};
    let disks = [0, BOOT_RECORD, LARGE_BLOCKS, COPY, COPY | LARGE_BLOCKS];
    disks.into_iter().flat_map(|disk| [vec![disk, 0], vec![disk | SHORTEN, 3]]).collect()
}

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let (flags, length) = (input.byte(), input.byte());
    let is_set = |flag| flags & flag != 0;
    let block = if is_set(flag::LARGE_BLOCKS) { 4096 } else { 512 };
    let mut ends = match is_set(flag::BOOT_RECORD) {
        true => [boot_records(), vec![0; END]],
        false => [gpt_front(block), gpt_back(block, is_set(flag::COPY))],
    };
    for patch in Patches::new(input) {
        if let Change::Bytes(bytes) = patch.change {
            crate::input::overwrite(&mut ends[usize::from(patch.piece & 1)], patch.offset, bytes);
        }
    }
    if !is_set(flag::UNREPAIRED) {
        repair(&mut ends[0], 0, block, block);
        repair(&mut ends[1], DISK - END, END - block, block);
    }
    let device = Arc::new(MemoryDevice::new(DISK as u64));
    for (start, bytes) in [0, DISK - END].into_iter().zip(&ends) {
        let sector = Sector(start as u64 / 512);
        write_all_at(device.as_ref(), sector, bytes).expect("the disk has these sectors");
    }
    let before = device.statistics().bytes_read;
    let table = PartitionTable::read(device.as_ref()).map_err(|error| error.to_string());
    let read = device.statistics().bytes_read - before;
    assert!(read <= BUDGET, "runaway reads: {read} bytes for one table");
    let Ok(table) = table else { return };
    drop(table.numbers());
    let disk: Arc<dyn BlockDevice> = device;
    for partition in table.partitions.iter().take(OPENED) {
        if let Ok(window) = open_partition(&disk, partition.number) {
            assert!(window.capacity() <= disk.capacity(), "a partition larger than its disk");
        }
        if is_set(flag::SHORTEN) {
            let shortened = Shortening::of(disk.as_ref(), partition.number)
                .and_then(|entry| entry.write(Sector(length.into())));
            drop(shortened.map_err(|error| error.to_string()));
        }
    }
    drop(PartitionTable::read(disk.as_ref()).map_err(|error| error.to_string()));
}

/// A boot record with a primary partition, and two logical ones in a chain.
fn boot_records() -> Vec<u8> {
    let mut front = vec![0; END];
    // Kind, start and length of the entries of each record, by its sector.
    let records: [(usize, [[u32; 3]; 2]); 3] = [
        (0, [[0x83, 40, 20], [0x05, 2, 100]]),
        (2, [[0x83, 10, 5], [0x05, 2, 20]]),
        (4, [[0x82, 20, 5], [0, 0, 0]]),
    ];
    for (sector, entries) in records {
        let record = &mut front[sector * 512..][..512];
        for (index, [kind, start, length]) in entries.into_iter().enumerate() {
            let entry = &mut record[446 + 16 * index..][..16];
            entry[4] = kind as u8;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..].copy_from_slice(&length.to_le_bytes());
        }
        record[510..].copy_from_slice(&[0x55, 0xaa]);
    }
    front
}

/// A protective boot record, a header and four entries.
fn gpt_front(block: usize) -> Vec<u8> {
    let mut front = vec![0; END];
    front[446 + 4] = 0xee;
    front[446 + 8..446 + 16].copy_from_slice(&[1, 0, 0, 0, 255, 0, 0, 0]);
    front[510..512].copy_from_slice(&[0x55, 0xaa]);
    put_gpt(&mut front, [block, 2 * block], [1, 2], block);
    repair(&mut front, 0, block, block);
    front
}

/// The last sectors of the disk: the entries and the header behind them, if there is a copy.
fn gpt_back(block: usize, copy: bool) -> Vec<u8> {
    let mut back = vec![0; END];
    if copy {
        let last = (DISK / block - 1) as u64;
        put_gpt(&mut back, [END - block, END - 2 * block], [last, last - 1], block);
        repair(&mut back, DISK - END, END - block, block);
    }
    back
}

/// Puts a header and a table with one entry at these offsets, which are those of these blocks.
fn put_gpt(end: &mut [u8], offsets: [usize; 2], blocks: [u64; 2], block: usize) {
    let (last, [own, table]) = ((DISK / block - 1) as u64, blocks);
    let header = &mut end[offsets[0]..][..512];
    header[..16].copy_from_slice(b"EFI PART\0\0\x01\0\x5c\0\0\0");
    let numbers: [(usize, u64); 5] =
        [(24, own), (32, last - own + 1), (40, 3), (48, last - 2), (72, table)];
    for (offset, number) in numbers {
        header[offset..offset + 8].copy_from_slice(&number.to_le_bytes());
    }
    header[80..84].copy_from_slice(&4_u32.to_le_bytes());
    header[84..88].copy_from_slice(&128_u32.to_le_bytes());
    let entry = &mut end[offsets[1]..][..128];
    entry[..32].fill(7);
    entry[32..40].copy_from_slice(&5_u64.to_le_bytes());
    entry[40..48].copy_from_slice(&20_u64.to_le_bytes());
}

/// Repairs the checksums of the header at an offset of the bytes from `start` on, and of its table,
/// where that lies in these bytes.
fn repair(bytes: &mut [u8], start: usize, header: usize, block: usize) {
    let number = |offset: usize| {
        u32::from_le_bytes([0, 1, 2, 3].map(|index| bytes[header + offset + index])) as usize
    };
    if !bytes[header..].starts_with(b"EFI PART") {
        return;
    }
    let (count, size, length) = (number(80), number(84), number(12));
    let place = number(72).checked_mul(block).and_then(|place| place.checked_sub(start));
    let table = place.zip(count.checked_mul(size));
    let table = table.and_then(|(place, len)| bytes.get(place..place.checked_add(len)?));
    if let Some(crc) = table.map(crc32) {
        bytes[header + 88..header + 92].copy_from_slice(&crc.to_le_bytes());
    }
    bytes[header + 16..header + 20].fill(0);
    if let Some(crc) = bytes.get(header..header + length.min(512)).map(crc32) {
        bytes[header + 16..header + 20].copy_from_slice(&crc.to_le_bytes());
    }
}

/// The checksum of GUID partition tables.
fn crc32(bytes: &[u8]) -> u32 {
    let table = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ 0xedb8_8320 }
        })
    });
    !table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers, first sectors and lengths of the partitions of what an end and another make.
    fn partitions(front: &[u8], back: &[u8]) -> Vec<[u64; 3]> {
        let device = MemoryDevice::new(DISK as u64);
        write_all_at(&device, Sector(0), front).unwrap();
        write_all_at(&device, Sector((DISK - END) as u64 / 512), back).unwrap();
        let table = PartitionTable::read(&device).unwrap();
        let all = table.partitions.iter();
        all.map(|one| [one.number.into(), one.start.0, one.length.0]).collect()
    }

    #[test]
    fn the_tables_are_sound() {
        let nothing = vec![0; END];
        assert_eq!(partitions(&boot_records(), &nothing), [[1, 40, 20], [5, 12, 5], [6, 24, 5]]);
        for (block, expected) in [(512, [[1, 5, 16]]), (4096, [[1, 40, 128]])] {
            assert_eq!(partitions(&gpt_front(block), &nothing), expected);
            assert_eq!(partitions(&nothing, &gpt_back(block, true)), expected);
        }
        seeds().iter().for_each(|seed| run(seed));
    }
}

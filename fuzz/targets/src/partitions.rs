//! Partition tables: GPT with its copy, MBR with its chain.
//!
//! The input patches the first and last sectors of a disk that has both a protective MBR and a
//! sound GPT, whose checksums are repaired afterwards.

use crate::input::{Change, Input, Patches};
use std::sync::Arc;
use undercroft_block::partition::{PartitionTable, open_partition};
use undercroft_block::{BlockDevice, MemoryDevice, Sector, write_all_at};

/// Sectors of the disk.
const SECTORS: u64 = 256;
/// Sectors at each end that can be patched: MBR, header, entries.
const END: usize = 8;
/// Partitions that are opened.
const OPENED: usize = 16;
/// Reads for one table: both copies, at most a mebibyte each, or a chain of extended records.
const BUDGET: u64 = 4 << 20;

pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let flags = input.byte();
    let mut ends = [front(), vec![0; END * 512]];
    for patch in Patches::new(input) {
        if let Change::Bytes(bytes) = patch.change {
            crate::input::overwrite(&mut ends[usize::from(patch.piece & 1)], patch.offset, bytes);
        }
    }
    if flags & 1 == 0 {
        repair(&mut ends[0]);
    }
    let device = Arc::new(MemoryDevice::new(SECTORS * 512));
    for (sector, bytes) in [0, SECTORS - END as u64].into_iter().zip(&ends) {
        write_all_at(device.as_ref(), Sector(sector), bytes).expect("the disk has these sectors");
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
    }
}

/// MBR, GPT header and one sector of four entries.
fn front() -> Vec<u8> {
    let mut front = vec![0; END * 512];
    front[446 + 4] = 0xee;
    front[446 + 8..446 + 16].copy_from_slice(&[1, 0, 0, 0, 255, 0, 0, 0]);
    front[510..512].copy_from_slice(&[0x55, 0xaa]);
    let header = &mut front[512..1024];
    header[..16].copy_from_slice(b"EFI PART\0\0\x01\0\x5c\0\0\0");
    let numbers: [(usize, u64); 5] =
        [(24, 1), (32, SECTORS - 1), (40, 34), (48, SECTORS - 34), (72, 2)];
    for (offset, number) in numbers {
        header[offset..offset + 8].copy_from_slice(&number.to_le_bytes());
    }
    header[80..84].copy_from_slice(&4_u32.to_le_bytes());
    header[84..88].copy_from_slice(&128_u32.to_le_bytes());
    let entry = &mut front[1024..1152];
    entry[..32].fill(7);
    entry[32..40].copy_from_slice(&40_u64.to_le_bytes());
    entry[40..48].copy_from_slice(&99_u64.to_le_bytes());
    repair(&mut front);
    front
}

/// Repairs the checksums of a header and of its table, where that lies in these sectors.
fn repair(front: &mut [u8]) {
    let number = |offset: usize| {
        u32::from_le_bytes([0, 1, 2, 3].map(|index| front[512 + offset + index])) as usize
    };
    let (count, size, length) = (number(80), number(84), number(12));
    let table = number(72).checked_mul(512).zip(count.checked_mul(size));
    let table = table.and_then(|(start, len)| front.get(start..start.checked_add(len)?));
    if let Some(crc) = table.map(crc32) {
        front[512 + 88..512 + 92].copy_from_slice(&crc.to_le_bytes());
    }
    front[512 + 16..512 + 20].fill(0);
    if let Some(crc) = front.get(512..512 + length.min(512)).map(crc32) {
        front[512 + 16..512 + 20].copy_from_slice(&crc.to_le_bytes());
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

//! Tables built byte by byte, sound and damaged.

use super::*;
use crate::drivers::MemoryDevice;
use crate::plug::write_all_at;
use crate::units::Sector;

const SECTORS: u64 = 4096;

fn disk() -> Arc<dyn BlockDevice> {
    Arc::new(MemoryDevice::new(SECTORS * 512))
}

fn put(disk: &Arc<dyn BlockDevice>, sector: u64, bytes: &[u8]) {
    write_all_at(disk.as_ref(), Sector(sector), bytes).unwrap();
}

/// Header at `block` for a table at `table`, with checksums.
fn gpt_header(block: u64, table_block: u64, table: &[u8], count: u32, size: u32) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[..8].copy_from_slice(b"EFI PART");
    bytes[12..16].copy_from_slice(&92_u32.to_le_bytes());
    bytes[24..32].copy_from_slice(&block.to_le_bytes());
    bytes[72..80].copy_from_slice(&table_block.to_le_bytes());
    bytes[80..84].copy_from_slice(&count.to_le_bytes());
    bytes[84..88].copy_from_slice(&size.to_le_bytes());
    bytes[88..92].copy_from_slice(&crc32fast::hash(table).to_le_bytes());
    let crc = crc32fast::hash(&bytes[..92]);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn gpt_table(partitions: &[(usize, u64, u64)]) -> Vec<u8> {
    let mut table = vec![0; 128 * 8];
    for (index, first, last) in partitions {
        let entry = &mut table[index * 128..][..128];
        entry[0] = 1;
        entry[32..40].copy_from_slice(&first.to_le_bytes());
        entry[40..48].copy_from_slice(&last.to_le_bytes());
    }
    table
}

fn mbr(entries: &[(usize, u8, u32, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    for (index, kind, start, length) in entries {
        let entry = &mut bytes[446 + index * 16..][..16];
        entry[4] = *kind;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..16].copy_from_slice(&length.to_le_bytes());
    }
    bytes[510..].copy_from_slice(&[0x55, 0xaa]);
    bytes
}

fn numbers(disk: &Arc<dyn BlockDevice>) -> Vec<(u32, u64, u64)> {
    let table = PartitionTable::read(disk.as_ref()).unwrap();
    table.partitions.iter().map(|one| (one.number, one.start.0, one.length.0)).collect()
}

#[test]
fn a_gpt_is_read_from_either_copy_and_with_either_block_size() {
    for (unit, backup) in [(1, false), (8, false), (1, true), (8, true)] {
        let disk = disk();
        let table = gpt_table(&[(0, 40, 99), (2, 100, 100)]);
        let place = if backup { SECTORS / unit - 1 } else { 1 };
        put(&disk, place * unit, &gpt_header(place, 2, &table, 8, 128));
        put(&disk, 2 * unit, &table);
        assert_eq!(numbers(&disk), [(1, 40 * unit, 60 * unit), (3, 100 * unit, unit)]);
        assert_eq!(open_partition(&disk, 3).unwrap().capacity(), Sector(unit));
        let message = open_partition(&disk, 2).err().unwrap().to_string();
        assert!(message.ends_with("no partition 2; it has 1, 3"), "{message}");
    }
}

#[test]
fn a_damaged_gpt_names_its_defect() {
    let table = gpt_table(&[(0, 40, 99)]);
    let sound = gpt_header(1, 2, &table, 8, 128);
    for (at, what) in [(73, "header"), (13, "header of"), (17, "checksum of the header")] {
        let disk = disk();
        let mut header = sound.clone();
        header[at] ^= 0x80;
        put(&disk, 1, &header);
        put(&disk, 2, &table);
        let error = PartitionTable::read(disk.as_ref()).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
    let disk = disk();
    put(&disk, 1, &sound);
    let error = PartitionTable::read(disk.as_ref()).unwrap_err();
    assert!(error.to_string().contains("checksum of the table"), "{error}");
}

#[test]
fn wild_numbers_in_a_gpt_are_errors() {
    for (table_block, count, size) in
        [(u64::MAX, 8, 128), (SECTORS, 8, 128), (2, u32::MAX, 128), (2, 8, 0), (2, 8, u32::MAX)]
    {
        let disk = disk();
        put(&disk, 1, &gpt_header(1, table_block, &gpt_table(&[]), count, size));
        let error = PartitionTable::read(disk.as_ref()).unwrap_err();
        assert!(matches!(error, PartitionError::Damaged { .. }), "{error}");
    }
    // Partitions that are not possible are left out; one beyond the end is an error when opened.
    let disk = disk();
    let table = gpt_table(&[(0, 9, 3), (1, 0, u64::MAX), (2, 4000, 5000)]);
    put(&disk, 1, &gpt_header(1, 2, &table, 8, 128));
    put(&disk, 2, &table);
    assert_eq!(numbers(&disk), [(3, 4000, 1001)]);
    let error = open_partition(&disk, 3).err().unwrap();
    assert!(matches!(error, PartitionError::Outside { number: 3, .. }), "{error}");
}

#[test]
fn primary_and_logical_partitions_are_numbered_as_linux_does() {
    let disk = disk();
    put(&disk, 0, &mbr(&[(0, 0x83, 64, 100), (1, 0x05, 1000, 2000), (3, 0x83, 3500, 10)]));
    put(&disk, 1000, &mbr(&[(0, 0x83, 8, 50), (1, 0x05, 500, 300)]));
    put(&disk, 1500, &mbr(&[(0, 0x83, 16, 60)]));
    let expected = [(1, 64, 100), (4, 3500, 10), (5, 1008, 50), (6, 1516, 60)];
    assert_eq!(numbers(&disk), expected);
}

#[test]
fn an_endless_chain_ends() {
    let disk = disk();
    put(&disk, 0, &mbr(&[(0, 0x05, 1000, 2000)]));
    put(&disk, 1000, &mbr(&[(0, 0x83, 8, 50), (1, 0x05, 0, 300)]));
    assert_eq!(numbers(&disk).len(), 256);
}

#[test]
fn no_table_is_an_error_with_its_remedy() {
    let error = PartitionTable::read(disk().as_ref()).unwrap_err();
    assert!(error.to_string().contains("leave the partition number out"), "{error}");
    let empty: Arc<dyn BlockDevice> = Arc::new(MemoryDevice::new(0));
    assert!(matches!(PartitionTable::read(empty.as_ref()), Err(PartitionError::NoTable { .. })));
}

#[test]
fn mutated_tables_never_panic() {
    let table = gpt_table(&[(0, 40, 99)]);
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for _ in 0..2_000 {
        let disk = disk();
        let mut record = mbr(&[(0, 0x83, 64, 100), (1, 0x0f, 1000, 2000)]);
        let mut header = gpt_header(1, 2, &table, 8, 128);
        for _ in 0..4 {
            record[446 + random(64) as usize] = random(256) as u8;
            header[random(92) as usize] = random(256) as u8;
        }
        header[16..20].fill(0);
        let size = usize::from(header[12]).min(512);
        let crc = crc32fast::hash(&header[..size]);
        header[16..20].copy_from_slice(&crc.to_le_bytes());
        put(&disk, 0, &record);
        put(&disk, 1000, &record);
        if random(2) == 0 {
            put(&disk, 1, &header);
            put(&disk, 2, &table);
        }
        for number in 1..6 {
            let _ = open_partition(&disk, number);
        }
    }
}

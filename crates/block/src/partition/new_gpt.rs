//! A new GUID partition table, as the UEFI specification has it, written with both copies and a
//! protective master boot record.

use super::gpt::{ENTRY_MIN, GPT_NAME_MAX, HEADER_MIN, MAGIC, put_checksums};
use super::guid::Guid;
use crate::bio::BlockError;
use crate::device::BlockDevice;
use crate::plug::{flush, write_all_at};
use crate::units::{SECTOR_SIZE, Sector};

/// Entries of a table, as all tools write them.
pub const GPT_ENTRIES: usize = 128;
/// Bytes of a table.
const TABLE_BYTES: u64 = GPT_ENTRIES as u64 * ENTRY_MIN as u64;
/// Revision 1.0 of the header.
const REVISION: u32 = 0x0001_0000;

/// One partition of a new table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPartition {
    /// What the partition is for.
    pub kind: Guid,
    /// Identity of the partition.
    pub id: Guid,
    /// First sector, a multiple of the block size.
    pub start: Sector,
    /// Number of sectors, a multiple of the block size, at least one block.
    pub length: Sector,
    /// Attribute bits.
    pub attributes: u64,
    /// Name; what is longer than [`GPT_NAME_MAX`] units of UTF-16 is cut off.
    pub name: String,
}

/// A new table for a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGpt {
    /// Identity of the disk.
    pub id: Guid,
    /// Bytes of a block of the disk: 512 or 4096. Tables count in these.
    pub block_size: u64,
    /// Partitions in the order of their numbers, at most [`GPT_ENTRIES`].
    pub partitions: Vec<NewPartition>,
}

/// Bytes that a table and its header take at either end of a disk, the boot record left out.
#[must_use]
pub const fn gpt_bytes(block_size: u64) -> u64 {
    TABLE_BYTES.next_multiple_of(block_size) + block_size
}

impl NewGpt {
    /// Writes the table to `device`: the copy at its end, then, when that is durable, the one at
    /// its beginning and the boot record. A device whose writing is interrupted has one sound copy
    /// or none.
    ///
    /// # Errors
    /// The device failed.
    ///
    /// # Panics
    /// When a partition is not between the copies, or there are too many: places are the caller's.
    pub fn write(&self, device: &dyn BlockDevice) -> Result<(), BlockError> {
        let sectors = self.block_size / SECTOR_SIZE;
        let blocks = device.capacity().0 / sectors;
        let table_blocks = TABLE_BYTES.div_ceil(self.block_size);
        let usable = 2 + table_blocks..blocks.saturating_sub(1 + table_blocks);
        assert!(self.partitions.len() <= GPT_ENTRIES, "more partitions than a table holds");
        for partition in &self.partitions {
            let end = partition.start.0 + partition.length.0;
            assert!(
                partition.start.0 >= usable.start * sectors && end <= usable.end * sectors,
                "a partition over the table"
            );
        }
        let table = self.table();
        let at = |block: u64| Sector(block * sectors);
        let header = |own, other, table_at| {
            self.header(&table, Places { own, other, table_at, usable: usable.clone() })
        };
        write_all_at(device, at(blocks - 1 - table_blocks), &table)?;
        write_all_at(device, at(blocks - 1), &header(blocks - 1, 1, blocks - 1 - table_blocks))?;
        flush(device)?;
        write_all_at(device, at(2), &table)?;
        write_all_at(device, at(1), &header(1, blocks - 1, 2))?;
        write_all_at(device, at(0), &self.boot_record(blocks))
    }

    fn table(&self) -> Vec<u8> {
        let mut table = vec![0; TABLE_BYTES.next_multiple_of(self.block_size) as usize];
        let sectors = self.block_size / SECTOR_SIZE;
        for (entry, partition) in table.chunks_exact_mut(ENTRY_MIN as usize).zip(&self.partitions) {
            let first = partition.start.0 / sectors;
            let last = first + partition.length.0 / sectors - 1;
            entry[..16].copy_from_slice(&partition.kind.0);
            entry[16..32].copy_from_slice(&partition.id.0);
            entry[32..40].copy_from_slice(&first.to_le_bytes());
            entry[40..48].copy_from_slice(&last.to_le_bytes());
            entry[48..56].copy_from_slice(&partition.attributes.to_le_bytes());
            let name = partition.name.encode_utf16().take(GPT_NAME_MAX);
            for (place, unit) in entry[56..].chunks_exact_mut(2).zip(name) {
                place.copy_from_slice(&unit.to_le_bytes());
            }
        }
        table
    }

    /// The block of one header.
    fn header(&self, table: &[u8], places: Places) -> Vec<u8> {
        let Places { own, other, table_at, usable } = places;
        let mut block = vec![0; self.block_size as usize];
        let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(8, &REVISION.to_le_bytes());
        put(12, &(HEADER_MIN as u32).to_le_bytes());
        put(24, &own.to_le_bytes());
        put(32, &other.to_le_bytes());
        put(40, &usable.start.to_le_bytes());
        put(48, &(usable.end - 1).to_le_bytes());
        put(56, &self.id.0);
        put(72, &table_at.to_le_bytes());
        put(80, &(GPT_ENTRIES as u32).to_le_bytes());
        put(84, &ENTRY_MIN.to_le_bytes());
        put_checksums(&mut block, &table[..TABLE_BYTES as usize]);
        block
    }

    /// The boot record that tells programs without GPT that all of the disk is in use.
    fn boot_record(&self, blocks: u64) -> Vec<u8> {
        let mut block = vec![0; self.block_size as usize];
        let length = u32::try_from(blocks - 1).unwrap_or(u32::MAX);
        let entry = &mut block[446..462];
        // Cylinder 0, head 0, sector 2; type; the last place that can be told so.
        entry[..8].copy_from_slice(&[0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff]);
        entry[8..12].copy_from_slice(&1_u32.to_le_bytes());
        entry[12..16].copy_from_slice(&length.to_le_bytes());
        block[510..512].copy_from_slice(&[0x55, 0xaa]);
        block
    }
}

/// Blocks that a header names.
struct Places {
    own: u64,
    other: u64,
    table_at: u64,
    usable: std::ops::Range<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::MemoryDevice;
    use crate::partition::{Partition, PartitionKind, PartitionTable, Scheme};
    use crate::plug::read_exact_at;

    fn sample(block_size: u64) -> NewGpt {
        let partition = |start, length, name: &str| NewPartition {
            kind: Guid([7; 16]),
            id: Guid([8; 16]),
            start: Sector(start),
            length: Sector(length),
            attributes: 0,
            name: name.to_owned(),
        };
        let long = "n\u{e4}me ".repeat(10);
        let partitions = vec![partition(2048, 2048, "first"), partition(4096, 8, &long)];
        NewGpt { id: Guid([9; 16]), block_size, partitions }
    }

    #[test]
    fn each_copy_is_read_back() {
        for block_size in [512, 4096] {
            let disk = MemoryDevice::new(4 << 20);
            let gpt = sample(block_size);
            gpt.write(&disk).unwrap();
            let read_back = |(number, new): (u32, &NewPartition)| Partition {
                number,
                start: new.start,
                length: new.length,
                kind: PartitionKind::Gpt(new.kind),
                name: new.name.chars().take(GPT_NAME_MAX).collect(),
            };
            let expected: Vec<_> = (1..).zip(&gpt.partitions).map(read_back).collect();
            let found = PartitionTable::read(&disk).unwrap();
            assert_eq!((found.scheme, &found.partitions[..]), (Scheme::Gpt, &expected[..]));
            // Without the first copy.
            let head = Sector(block_size / SECTOR_SIZE);
            write_all_at(&disk, head, &[0; 4096]).unwrap();
            assert_eq!(PartitionTable::read(&disk).unwrap(), found);
        }
    }

    #[test]
    fn a_name_is_cut_at_the_end_of_its_field() {
        let disk = MemoryDevice::new(4 << 20);
        sample(512).write(&disk).unwrap();
        let mut table = [0; 512];
        read_exact_at(&disk, Sector(2), &mut table).unwrap();
        assert_eq!(table[56..60], *b"f\0i\0");
        assert_eq!(table[128 + 56..128 + 62], *b"n\0\xe4\0m\0");
        assert!(table[256..].iter().all(|byte| *byte == 0));
    }

    #[test]
    #[should_panic(expected = "a partition over the table")]
    fn a_partition_over_the_table_is_refused() {
        let mut gpt = sample(512);
        gpt.partitions[0].start = Sector(33);
        let _ = gpt.write(&MemoryDevice::new(4 << 20));
    }
}

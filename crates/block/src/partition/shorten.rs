//! A partition made shorter, in the table that there is.

use super::error::PartitionError;
use super::{PartitionTable, Scheme, gpt, mbr};
use crate::device::BlockDevice;
use crate::units::Sector;

/// Makes a partition end after its first `length` sectors. Contents stay, and so does the length of
/// the device. Of a GPT the copy at the end changes first: an interruption leaves a sound one.
///
/// # Errors
/// There is no such partition, or it is shorter; it is a logical one of a boot record; a copy of the
/// table is damaged; the device failed.
pub fn shorten_partition(
    device: &dyn BlockDevice,
    number: u32,
    length: Sector,
) -> Result<(), PartitionError> {
    let table = PartitionTable::read(device)?;
    let name = || device.name().to_owned();
    let Some(found) = table.partitions.iter().find(|one| one.number == number) else {
        let present = table.numbers();
        return Err(PartitionError::NoPartition { device: name(), number, present });
    };
    if length == found.length {
        return Ok(());
    }
    let refused = |what: &str| {
        Err(PartitionError::Unchangeable { device: name(), number, what: what.to_owned() })
    };
    match table.scheme {
        _ if length.0 == 0 || length > found.length => refused("it does not become shorter"),
        Scheme::Gpt => gpt::shorten(device, found, length),
        Scheme::Mbr if number <= mbr::PRIMARY => mbr::shorten(device, number, length),
        Scheme::Mbr => refused("it is a logical one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::MemoryDevice;
    use crate::partition::{Guid, NewGpt, NewPartition};
    use crate::plug::write_all_at;

    fn gpt(block_size: u64) -> MemoryDevice {
        let partition = |start| NewPartition {
            kind: Guid([7; 16]),
            id: Guid([8; 16]),
            start: Sector(start),
            length: Sector(2048),
            attributes: 0,
            name: "name".to_owned(),
        };
        let disk = MemoryDevice::new(4 << 20);
        let partitions = vec![partition(2048), partition(4096)];
        NewGpt { id: Guid([9; 16]), block_size, partitions }.write(&disk).unwrap();
        disk
    }

    fn lengths(disk: &MemoryDevice) -> Vec<u64> {
        let table = PartitionTable::read(disk).unwrap();
        table.partitions.iter().map(|one| one.length.0).collect()
    }

    #[test]
    fn both_copies_of_a_gpt_change() {
        for block_size in [512, 4096] {
            let disk = gpt(block_size);
            shorten_partition(&disk, 1, Sector(1024)).unwrap();
            assert_eq!(lengths(&disk), [1024, 2048]);
            // Without the first copy.
            write_all_at(&disk, Sector(block_size / 512), &[0; 4096]).unwrap();
            assert_eq!(lengths(&disk), [1024, 2048]);
            let error = shorten_partition(&disk, 1, Sector(512)).unwrap_err();
            assert!(matches!(error, PartitionError::Unchangeable { .. }), "{error}");
            assert_eq!(lengths(&disk), [1024, 2048]);
        }
    }

    #[test]
    fn what_is_no_shorter_partition_is_refused() {
        let disk = gpt(512);
        for (number, length) in [(1, 0), (1, 2049), (3, 8)] {
            assert!(shorten_partition(&disk, number, Sector(length)).is_err());
        }
        shorten_partition(&disk, 2, Sector(2048)).unwrap();
        assert_eq!(lengths(&disk), [2048, 2048]);
    }

    #[test]
    fn a_primary_partition_of_a_boot_record_changes() {
        let disk = MemoryDevice::new(4 << 20);
        let mut record = [0; 512];
        record[446 + 16 + 4] = 0x83;
        record[446 + 16 + 8..446 + 16 + 12].copy_from_slice(&2048_u32.to_le_bytes());
        record[446 + 16 + 12..446 + 16 + 16].copy_from_slice(&1024_u32.to_le_bytes());
        record[510..].copy_from_slice(&[0x55, 0xaa]);
        write_all_at(&disk, Sector(0), &record).unwrap();
        shorten_partition(&disk, 2, Sector(512)).unwrap();
        assert_eq!(lengths(&disk), [512]);
        assert!(shorten_partition(&disk, 2, Sector(513)).is_err());
    }
}

//! A partition made shorter, in the table that there is.

use super::error::PartitionError;
use super::{Partition, PartitionTable, Scheme, gpt, mbr};
use crate::device::BlockDevice;
use crate::units::Sector;

/// A partition whose entry can be changed so that it becomes shorter.
#[derive(Debug)]
pub struct Shortening<'d> {
    device: &'d dyn BlockDevice,
    scheme: Scheme,
    partition: Partition,
}

impl<'d> Shortening<'d> {
    /// Looks at the entry of a partition, and writes nothing: for programs that change what is in the
    /// partition first.
    ///
    /// # Errors
    /// There is no such partition; it is a logical one of a boot record; a copy of the table is
    /// damaged; the device failed.
    pub fn of(device: &'d dyn BlockDevice, number: u32) -> Result<Self, PartitionError> {
        let PartitionTable { scheme, partitions } = &PartitionTable::read(device)?;
        let found = partitions.iter().find(|one| one.number == number);
        let partition = found.ok_or_else(|| super::no_partition(device, number, partitions))?;
        let this = Self { device, scheme: *scheme, partition: partition.clone() };
        match scheme {
            Scheme::Gpt => gpt::shortened_copies(device, partition, partition.length).map(drop)?,
            Scheme::Mbr if number <= mbr::PRIMARY => {}
            Scheme::Mbr => return Err(this.refused("it is a logical one")),
        }
        Ok(this)
    }

    /// Makes the partition end after its first `length` sectors. Contents stay, and so does the
    /// length of the device. Of a GPT the copy at the end changes first: an interruption leaves a
    /// sound one.
    ///
    /// # Errors
    /// The partition is shorter; the table was changed since; the device failed.
    pub fn write(&self, length: Sector) -> Result<(), PartitionError> {
        if length == self.partition.length {
            return Ok(());
        }
        if length.0 == 0 || length > self.partition.length {
            return Err(self.refused("it does not become shorter"));
        }
        match self.scheme {
            Scheme::Gpt => gpt::shorten(self.device, &self.partition, length),
            Scheme::Mbr => mbr::shorten(self.device, self.partition.number, length),
        }
    }

    fn refused(&self, what: &str) -> PartitionError {
        PartitionError::Unchangeable {
            device: self.device.name().to_owned(),
            number: self.partition.number,
            what: what.to_owned(),
        }
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

    fn shorten(disk: &MemoryDevice, number: u32, length: u64) -> Result<(), PartitionError> {
        Shortening::of(disk, number)?.write(Sector(length))
    }

    fn lengths(disk: &MemoryDevice) -> Vec<u64> {
        let table = PartitionTable::read(disk).unwrap();
        table.partitions.iter().map(|one| one.length.0).collect()
    }

    #[test]
    fn both_copies_of_a_gpt_change() {
        for block_size in [512, 4096] {
            let disk = gpt(block_size);
            shorten(&disk, 1, 1024).unwrap();
            assert_eq!(lengths(&disk), [1024, 2048]);
            // Without the first copy.
            write_all_at(&disk, Sector(block_size / 512), &[0; 4096]).unwrap();
            assert_eq!(lengths(&disk), [1024, 2048]);
            let error = Shortening::of(&disk, 1).unwrap_err();
            assert!(matches!(error, PartitionError::Unchangeable { .. }), "{error}");
            assert_eq!(lengths(&disk), [1024, 2048]);
        }
    }

    #[test]
    fn what_is_no_shorter_partition_is_refused() {
        let disk = gpt(512);
        for (number, length) in [(1, 0), (1, 2049), (3, 8)] {
            assert!(shorten(&disk, number, length).is_err());
        }
        shorten(&disk, 2, 2048).unwrap();
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
        shorten(&disk, 2, 512).unwrap();
        assert_eq!(lengths(&disk), [512]);
        assert!(shorten(&disk, 2, 513).is_err());
    }
}

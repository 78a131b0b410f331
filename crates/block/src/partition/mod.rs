//! Partition tables of disk images: GPT and MBR are read, GPT is written, and an entry of
//! either is made shorter.
//!
//! Tables come from outside: every number is checked, work and memory are bounded whatever the
//! numbers, and a partition that leaves the device is an error when it is opened, not before.

mod entry;
mod error;
mod gpt;
mod guid;
mod kind;
mod mbr;
mod new_gpt;
mod shorten;

use std::sync::Arc;

use crate::device::BlockDevice;
use crate::stack::window::Window;

pub use entry::Partition;
pub use error::PartitionError;
pub use gpt::GPT_NAME_MAX;
pub use guid::Guid;
pub use kind::PartitionKind;
pub use new_gpt::{GPT_ENTRIES, NewGpt, NewPartition, gpt_bytes};
pub use shorten::Shortening;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// GUID partition table.
    Gpt,
    /// Master boot record with its chain of extended ones.
    Mbr,
}

/// The partitions of a device, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionTable {
    /// How the table is written.
    pub scheme: Scheme,
    /// Partitions in use.
    pub partitions: Vec<Partition>,
}

impl PartitionTable {
    /// Reads the table of `device`: a sound GPT, else an MBR.
    ///
    /// # Errors
    /// There is none, or the device failed.
    pub fn read(device: &dyn BlockDevice) -> Result<Self, PartitionError> {
        if let Some(partitions) = gpt::read(device)? {
            return Ok(Self { scheme: Scheme::Gpt, partitions });
        }
        match mbr::read(device)? {
            Some(partitions) => Ok(Self { scheme: Scheme::Mbr, partitions }),
            None => Err(PartitionError::NoTable { device: device.name().to_owned() }),
        }
    }

    /// The numbers of the partitions, for messages.
    #[must_use]
    pub fn numbers(&self) -> String {
        numbers(&self.partitions)
    }
}

fn numbers(partitions: &[Partition]) -> String {
    if partitions.is_empty() {
        return "none".to_owned();
    }
    let numbers: Vec<_> = partitions.iter().map(|one| one.number.to_string()).collect();
    numbers.join(", ")
}

/// The error of a number that none of the partitions has.
fn no_partition(device: &dyn BlockDevice, number: u32, partitions: &[Partition]) -> PartitionError {
    let (device, present) = (device.name().to_owned(), numbers(partitions));
    PartitionError::NoPartition { device, number, present }
}

/// The partition `number` of `device` as a device of its own.
///
/// # Errors
/// There is no table or no such partition, it leaves the device, or the device failed.
pub fn open_partition(
    device: &Arc<dyn BlockDevice>,
    number: u32,
) -> Result<Window, PartitionError> {
    let table = PartitionTable::read(device.as_ref())?;
    let found = table.partitions.iter().find(|one| one.number == number);
    let found = found.ok_or_else(|| no_partition(device.as_ref(), number, &table.partitions))?;
    found.open(device)
}

#[cfg(test)]
mod tests;

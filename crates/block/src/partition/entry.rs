//! One partition of a table.

use std::sync::Arc;

use super::error::PartitionError;
use super::kind::PartitionKind;
use crate::device::BlockDevice;
use crate::stack::window::Window;
use crate::units::Sector;

/// One partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number as Linux counts: GPT by place in the table from 1, MBR primary 1 to 4, logical
    /// from 5.
    pub number: u32,
    /// First sector on the device.
    pub start: Sector,
    /// Number of sectors.
    pub length: Sector,
    /// What it is for, as its entry says.
    pub kind: PartitionKind,
    /// Its name; a master boot record has none.
    pub name: String,
}

impl Partition {
    /// The partition as a device of its own; `disk` is the one with the table.
    ///
    /// # Errors
    /// It leaves the disk.
    pub fn open(&self, disk: &Arc<dyn BlockDevice>) -> Result<Window, PartitionError> {
        Window::new(Arc::clone(disk), self.start, self.length).ok_or_else(|| {
            PartitionError::Outside {
                device: disk.name().to_owned(),
                number: self.number,
                start: self.start,
                length: self.length,
                capacity: disk.capacity(),
            }
        })
    }
}

//! One partition of a table.

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
}

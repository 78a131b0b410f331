//! Whole disks: a partition table, the volume, and what stands beside it.
//!
//! A plan looks at everything that can be wrong before the volume is built: sources of
//! partitions are there and fit. The volume is built in its window of the disk. The other partitions
//! follow, since their places depend on its size, and the table comes last: a disk whose writing is
//! interrupted has none.
//!
//! All identifiers follow from what the disk holds, so the same input gives the same bytes.

mod contents;
mod copy;
mod error;
mod fat;
mod identity;
mod kind;
mod layout;
mod partition;
mod plan;
mod swap;

pub use error::DiskError;
pub use kind::PartitionKind;
pub(crate) use layout::Layout;
pub use partition::{Content, Partition};
pub(crate) use plan::DiskPlan;

use uuid::Uuid;

/// How to make a disk.
#[derive(Clone, Debug, Default)]
pub struct DiskOptions {
    /// Its partitions, in the order of their places and numbers. One holds the volume.
    pub partitions: Vec<Partition>,
    /// Bytes of the disk; without it as many as the partitions need. A block device has its own.
    pub size: Option<u64>,
}

/// A disk that was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiskSummary {
    /// Identity of the disk.
    pub id: Uuid,
    /// Length in bytes.
    pub bytes: u64,
    /// Its partitions; the first has number 1.
    pub partitions: Vec<PartitionSummary>,
}

/// A partition that was made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartitionSummary {
    /// What it is for.
    pub kind: PartitionKind,
    /// Its name.
    pub name: String,
    /// Its identity, by which systems find it (PARTUUID).
    pub id: Uuid,
    /// Where it starts, in bytes.
    pub start: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Whether it holds the volume.
    pub is_volume: bool,
}

//! Free space of a volume, for clients that copy it.

use std::sync::Arc;
use undercroft_block::{BlockDevice, SECTOR_SIZE};
use undercroft_nbd::protocol::StatusExtent;
use undercroft_nbd::server::Extents;
use undercroft_xfs::Volume;
use undercroft_xfs::frag::for_each_free;

/// The status of a range whose contents a volume does not need.
const FREE: u64 = 1;

/// The free extents of a volume that does not change, in bytes, ascending.
pub(super) struct FreeSpace {
    extents: Vec<(u64, u64)>,
}

impl FreeSpace {
    /// Of the volume on `device`, after its journal was replayed in memory; none if there is no
    /// volume, or its trees are damaged.
    pub(super) fn of_volume(device: Arc<dyn BlockDevice>) -> Option<Self> {
        let volume = Volume::open(device).ok()?;
        let mut extents: Vec<(u64, u64)> = Vec::new();
        for_each_free(&volume, |sector, sectors| {
            let start = sector.0 * SECTOR_SIZE;
            extents.push((start, start + sectors * SECTOR_SIZE));
        })
        .ok()?;
        extents.sort_unstable();
        Some(Self { extents })
    }
}

impl Extents for FreeSpace {
    fn name(&self) -> &str {
        "undercroft:free"
    }

    fn at(&self, offset: u64, end: u64) -> StatusExtent {
        let next = self.extents.partition_point(|(_, until)| *until <= offset);
        let (start, until) = self.extents.get(next).copied().unwrap_or((end, end));
        let (until, flags) = if start <= offset { (until, FREE) } else { (start, 0) };
        StatusExtent { length: until.min(end) - offset, flags }
    }
}

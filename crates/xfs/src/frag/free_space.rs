//! Free extents by length, from both trees.

use super::histogram::Histogram;
use crate::btree::{Bnobt, Cntbt};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::group_tree;
use crate::units::AgNumber;
use crate::volume::Volume;
use undercroft_block::Sector;

/// Free extents of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeSpace {
    /// By length, as the by-block trees have them.
    pub by_block: Histogram,
    /// By length, as the by-size trees have them. The same, unless the volume is damaged.
    pub by_size: Histogram,
    /// Length of the longest one in blocks.
    pub longest: u32,
}

impl FreeSpace {
    /// That of a volume.
    ///
    /// # Errors
    /// A header or a tree is damaged, or the device failed.
    pub fn of(volume: &Volume) -> Result<Self, Error> {
        let mut free = Self::default();
        for ag in (0..volume.geometry().ag_count).map(AgNumber) {
            free.add(volume, ag, |_| ())?;
        }
        Ok(free)
    }

    /// Adds the extents of a group; `visit` sees those of the by-block tree.
    pub(super) fn add(
        &mut self,
        volume: &Volume,
        ag: AgNumber,
        mut visit: impl FnMut(AllocRecord),
    ) -> Result<(), Error> {
        group_tree::free_extents::<Bnobt>(volume, ag, |extent| {
            self.by_block.add(extent.len.into());
            self.longest = self.longest.max(extent.len);
            visit(extent);
        })?;
        group_tree::free_extents::<Cntbt>(volume, ag, |extent| self.by_size.add(extent.len.into()))
    }

    /// Mean length of a free extent.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.by_block.count();
        (count > 0).then(|| self.by_block.sum() as f64 / count as f64)
    }
}

/// Calls `visit` with the first sector and the number of sectors of each free extent of a volume,
/// group by group, each ascending.
///
/// # Errors
/// A header or a tree is damaged, or the device failed.
pub fn for_each_free(volume: &Volume, mut visit: impl FnMut(Sector, u64)) -> Result<(), Error> {
    let geometry = volume.geometry();
    let sectors = u64::from(geometry.sectors_per_block());
    for ag in (0..geometry.ag_count).map(AgNumber) {
        group_tree::free_extents::<Bnobt>(volume, ag, |extent| {
            visit(geometry.ag_sector(ag, extent.start), u64::from(extent.len) * sectors);
        })?;
    }
    Ok(())
}

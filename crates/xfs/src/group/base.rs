//! The shared state under all groups of a volume.

use crate::cache::{BufferAddress, BufferRef, Cache};
use crate::error::Error;
use crate::format::{BufferKind, TreeHeights};
use crate::geometry::Geometry;
use crate::space::FreeSpace;
use crate::units::AgNumber;

/// Cache, geometry and counts that every group of a volume uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupBase<'v> {
    pub(crate) cache: &'v Cache,
    pub(crate) geometry: &'v Geometry,
    /// Greatest heights of the trees.
    pub(crate) heights: &'v TreeHeights,
    /// The count of free space of the volume.
    pub(crate) free_space: &'v FreeSpace,
}

impl GroupBase<'_> {
    /// Reads a header sector of a group.
    pub(crate) fn header(
        &self,
        ag: AgNumber,
        index: u32,
        kind: BufferKind,
    ) -> Result<BufferRef, Error> {
        self.cache.read(&self.header_address(ag, index), kind)
    }

    fn header_address(&self, ag: AgNumber, index: u32) -> BufferAddress {
        let sectors = (self.geometry.sector_size() / 512) as u32;
        BufferAddress::contiguous(self.geometry.header_sector(ag, index), sectors)
    }

    /// Begins to read the headers of these groups.
    pub(crate) fn prefetch_headers(&self, groups: impl Iterator<Item = AgNumber>) {
        let headers = groups.flat_map(|ag| (1..=3).map(move |index| (ag, index)));
        self.cache.prefetch(headers.map(|(ag, index)| self.header_address(ag, index)));
    }
}

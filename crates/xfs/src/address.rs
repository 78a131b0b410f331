//! Where metadata lies on the device.

use crate::geometry::Geometry;
use crate::units::{AgBlock, AgNumber};
use smallvec::SmallVec;
use undercroft_block::Sector;

/// Where a buffer lives: one part, or several when a directory block of several file system blocks
/// is scattered. The first sector is its name in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferAddress {
    parts: SmallVec<[(Sector, u32); 1]>,
}

impl BufferAddress {
    /// One contiguous range of `sectors` units of 512 bytes.
    #[must_use]
    pub fn contiguous(first: Sector, sectors: u32) -> Self {
        Self { parts: SmallVec::from_buf([(first, sectors)]) }
    }

    /// `len` blocks of a group from `block`.
    #[must_use]
    pub fn in_group(geometry: &Geometry, ag: AgNumber, block: AgBlock, len: u32) -> Self {
        Self::contiguous(geometry.ag_sector(ag, block), len * geometry.sectors_per_block())
    }

    /// Several ranges in the order of the bytes; at least one.
    #[must_use]
    pub fn scattered(parts: &[(Sector, u32)]) -> Self {
        Self { parts: SmallVec::from_slice(parts) }
    }

    /// First sector: the self-address in block headers.
    #[must_use]
    pub fn first(&self) -> Sector {
        self.parts[0].0
    }

    /// The ranges (first sector, sectors), in the order of the bytes.
    #[must_use]
    pub fn parts(&self) -> &[(Sector, u32)] {
        &self.parts
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|(_, sectors)| *sectors as usize * 512).sum()
    }

    /// Never: an address has at least one part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

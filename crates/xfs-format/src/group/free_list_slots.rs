//! Where the slots of a free list are in its sector (docs/format/groups.md#agfl).

use crate::geometry::Geometry;

const HEADER: usize = 36;

/// Bytes before the first slot; v4 volumes have no header.
const fn header(geometry: &Geometry) -> usize {
    if geometry.features.crc { HEADER } else { 0 }
}

/// Number of slots of the ring.
#[must_use]
pub const fn slots(geometry: &Geometry) -> u32 {
    ((geometry.sector_size() - header(geometry)) / 4) as u32
}

/// Byte of a slot.
pub(super) const fn slot_offset(geometry: &Geometry, slot: u32) -> usize {
    header(geometry) + 4 * slot as usize
}

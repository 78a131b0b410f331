//! Parts of groups.

use crate::geometry::Geometry;
use crate::units::AgNumber;

/// A part of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupPart {
    pub(crate) ag: AgNumber,
    /// First block.
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl GroupPart {
    /// A whole group.
    pub(crate) fn whole(geometry: &Geometry, ag: AgNumber) -> Self {
        Self { ag, start: 0, len: geometry.ag_length(ag) }
    }
}

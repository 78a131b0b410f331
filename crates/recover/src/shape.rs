//! Where a volume is, and its sizes.

use undercroft_xfs_format::Geometry;

/// Where a volume is, and its sizes.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// Its first sector.
    pub(crate) start: u64,
    pub(crate) geometry: Geometry,
    /// A copy of the superblock says so.
    pub(crate) is_told: bool,
}

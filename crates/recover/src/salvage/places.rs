//! Blocks that files claim, looked up by block.

use undercroft_xfs_format::Extent;
use undercroft_xfs_format::units::InodeNumber;

/// Claims on one block that are looked through. Of sound volumes there is one.
const MOST: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Place {
    start: u64,
    len: u32,
    owner: InodeNumber,
}

/// Ranges of blocks with the files that claim them.
#[derive(Debug, Default)]
pub(super) struct Places(Vec<Place>);

impl Places {
    pub(super) fn add(&mut self, owner: InodeNumber, extent: &Extent) {
        self.0.push(Place { start: extent.start.0, len: extent.len, owner });
    }

    /// The file that claims a block; of several that which begins last before it.
    pub(super) fn owner(&self, block: u64) -> Option<InodeNumber> {
        let Self(places) = self;
        let behind = places.partition_point(|place| place.start <= block);
        let mut near = places[..behind].iter().rev().take(MOST);
        near.find(|place| block - place.start < place.len.into()).map(|place| place.owner)
    }

    /// Has to be called before anything is asked for.
    pub(super) fn sort(&mut self) {
        self.0.sort_unstable_by_key(|place| place.start);
    }

    /// Whether a block of the volume is one of a file.
    pub(super) fn has(&self, owner: InodeNumber, block: u64) -> bool {
        let Self(places) = self;
        let behind = places.partition_point(|place| place.start <= block);
        let near = places[..behind].iter().rev().take(MOST);
        let mut own = near.filter(|place| place.owner == owner);
        own.any(|place| block - place.start < place.len.into())
    }
}

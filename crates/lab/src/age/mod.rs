//! Free space as years of use leave it, made at once and reproducibly by seed.
//!
//! Recipe: docs/algorithms/locality.md#ageing. A kernel is made to age a volume by filling it with
//! a file and punching holes into that in random order. Here the pieces that stay are allocated one
//! by one where they have to be, in random order, which leaves the same free space with trees that
//! grew by random splits. Then each group's pieces become a file, `filler/group-N`, whose offsets
//! are those of the group, so that its holes are the free space.

pub(crate) mod figure;
mod filler;
mod map;
mod outcome;
pub(crate) mod table;

pub use map::FreeMap;
pub use outcome::AgeOutcome;

use undercroft_xfs::Volume;
use undercroft_xfs::format::AllocRecord;
use undercroft_xfs::internals::btree::Bnobt;
use undercroft_xfs::internals::group_tree::free_extents;
use undercroft_xfs::units::{AgNumber, InodeNumber};

use crate::error::LabError;
use crate::measure::random::stream;
pub(crate) use filler::{plain_inode, take};

/// A volume that was aged.
#[derive(Clone, Debug, PartialEq)]
pub struct Aged {
    /// The free space that was made, and the rest of the volume.
    pub outcome: AgeOutcome,
    /// The files that keep the rest.
    pub fillers: Vec<InodeNumber>,
}

/// Makes the free space of a volume look like `map`. The volume is open for changes that skip the
/// journal; the caller finishes it.
///
/// # Errors
/// The root directory has a `filler` already, the map does not fit the volume, or what a change of
/// a volume can meet.
pub fn age(volume: &Volume, map: &FreeMap, seed: u64) -> Result<Aged, LabError> {
    let fillers = filler::create(volume)?;
    let (mut kept, mut refused) = (0, 0);
    for (ag, filler) in (0..volume.geometry().ag_count).map(AgNumber).zip(&fillers) {
        let mut random = stream(seed, ag.0.into());
        let mut pieces =
            map.pieces(&free(volume, ag)?, volume.geometry().ag_blocks, &mut random)?;
        random.shuffle(&mut pieces);
        let before = pieces.len();
        pieces = take(volume, ag, &pieces)?;
        refused += (before - pieces.len()) as u64;
        kept += pieces.len() as u64;
        pieces.sort_unstable_by_key(|piece| piece.start);
        filler::map(volume, *filler, ag, &pieces)?;
    }
    Ok(Aged { outcome: AgeOutcome::of(volume, map, kept, refused)?, fillers })
}

/// The free extents of a group, ascending.
pub(crate) fn free(volume: &Volume, ag: AgNumber) -> Result<Vec<AllocRecord>, LabError> {
    let mut extents = Vec::new();
    free_extents::<Bnobt>(volume, ag, |extent| extents.push(extent))?;
    Ok(extents)
}

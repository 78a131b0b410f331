//! Remains of a crash without a reference: inodes without a name, and extents that were
//! set aside for copy-on-write (docs/format/journal/replay.md#after-the-second-pass).

use crate::alloc;
use crate::error::Error;
use crate::file::first_orphan;
use crate::format::{AllocRecord, RmapOwner};
use crate::group_tree::staging_extents;
use crate::refcount;
use crate::units::AgNumber;
use crate::volume::Volume;

/// Extents that one transaction frees.
const STEP: usize = 16;

fn groups(volume: &Volume) -> impl Iterator<Item = AgNumber> + use<> {
    (0..volume.geometry().ag_count).map(AgNumber)
}

/// Whether a volume has either.
pub(super) fn has_any(volume: &Volume) -> Result<bool, Error> {
    for ag in groups(volume) {
        if first_orphan(volume, ag)?.is_some() || !staged(volume, ag)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn staged(volume: &Volume, ag: AgNumber) -> Result<Vec<AllocRecord>, Error> {
    let mut extents = Vec::new();
    staging_extents(volume, ag, |extent| extents.push(extent))?;
    Ok(extents)
}

/// Frees everything that is set aside for copy-on-write; returns the number of extents.
pub(crate) fn free_staging(volume: &Volume) -> Result<u64, Error> {
    let mut count = 0;
    for ag in groups(volume) {
        for extents in staged(volume, ag)?.chunks(STEP) {
            let mut trans = volume.begin()?;
            trans.in_group(ag, |trans, group| {
                for AllocRecord { start, len } in extents.iter().copied() {
                    alloc::fill_free_list(trans, group)?;
                    refcount::remove_staging(trans, group, start, len)?;
                    alloc::free_in_group(trans, group, start, len, Some(RmapOwner::COW))?;
                }
                Ok(())
            })?;
            trans.commit(&mut [])?;
            count += extents.len() as u64;
        }
    }
    Ok(count)
}

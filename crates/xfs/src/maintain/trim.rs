//! Free space given back to the device: a file gets holes there, a disk a discard.
//!
//! Only what is free for good is given back: the journal is replayed and ended first, so no crash can
//! bring back a file whose blocks are gone.

use crate::btree::Bnobt;
use crate::error::Error;
use crate::group_tree;
use crate::units::AgNumber;
use crate::volume::{LiveOptions, Volume};
use std::sync::Arc;
use undercroft_block::{Batch, Bio, BlockDevice, Plug, Reserved, SECTOR_SIZE, flush};

/// Longest discard: more would keep a device busy for too long to tell how far it is.
const LONGEST: u64 = 1 << 30;

/// What was given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Free extents.
    pub extents: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Gives the free extents of at least `minimum` bytes of the volume on `device`, which must not be open,
/// back to the device. Calls `progress` with the bytes done, and those there are. A device may leave a
/// part of it undone: a discard is advice.
///
/// # Errors
/// The volume cannot be changed, as for [`Volume::open_live`]; its free space is damaged; the device
/// failed.
pub fn trim(
    device: &Arc<dyn BlockDevice>,
    minimum: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Trimmed, Error> {
    let device = &Reserved::new(Arc::clone(device))?;
    // Its journal is replayed by that, and what is in it is durable in its place.
    Volume::open_reserved(device.clone(), &LiveOptions::default())?.close()?;
    let volume = Volume::open(Arc::clone(device))?;
    let mut extents = Vec::new();
    let geometry = volume.geometry();
    for ag in (0..geometry.ag_count).map(AgNumber) {
        group_tree::free_extents::<Bnobt>(&volume, ag, |extent| {
            let sectors = u64::from(extent.len) * u64::from(geometry.sectors_per_block());
            if sectors * SECTOR_SIZE >= minimum {
                extents.push((geometry.ag_sector(ag, extent.start), sectors));
            }
        })?;
    }
    let bytes = extents.iter().map(|(_, sectors)| sectors * SECTOR_SIZE).sum();
    let mut done = 0;
    let discards = Batch::new();
    let plug = Plug::new(device);
    for (start, sectors) in &extents {
        let (mut at, mut left) = (*start, *sectors);
        while left > 0 {
            let piece = left.min(LONGEST / SECTOR_SIZE);
            plug.submit(Bio::discard(at, piece * SECTOR_SIZE).in_batch(&discards));
            at.0 += piece;
            left -= piece;
            done += piece * SECTOR_SIZE;
            progress(done, bytes);
        }
    }
    plug.flush();
    discards.wait()?;
    flush(device.as_ref())?;
    Ok(Trimmed { extents: extents.len() as u64, bytes })
}

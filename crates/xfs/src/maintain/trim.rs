//! Free space of a volume that nobody has open given back to the device: a file gets holes there, a disk a
//! discard.
//!
//! Only what is free for good is given back: the journal is replayed first, so no crash can bring back a file
//! whose blocks are gone.

use crate::error::Error;
use crate::ops::Trimmed;
use crate::volume::{LiveOptions, Volume};
use std::sync::Arc;
use undercroft_block::{BlockDevice, Reserved, flush};

/// Gives the free extents of at least `minimum` bytes of the volume on `device`, which must not be open,
/// back to the device. Calls `progress` with the free bytes that were looked at, and those there are. A device
/// may leave a part of it undone: a discard is advice.
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
    let volume = Volume::open_reserved(device.clone(), &LiveOptions::default())?;
    let usage = volume.usage()?;
    let free = usage.free_blocks * u64::from(usage.block_size);
    let mut show = |done: u64| progress(done.min(free), free);
    let trimmed = volume.discard_free(0..u64::MAX, minimum, &mut show)?;
    volume.close()?;
    flush(device.as_ref())?;
    Ok(trimmed)
}

//! A volume made another one by the write of one sector.
//!
//! A new journal in free space holds all that is to be different, in one transaction. The superblock that names it
//! is the switch: the old one leads to the old volume with its own journal, which nobody wrote to, and the new
//! one to a volume that has to be recovered, by anybody, with all of its features known from the beginning.
//! (A kernel that replays a change of features goes on with what it worked out from the old ones, and fails.)

use super::install::{BlockImage, check_length, log_images, renew};
use super::{ReplayTarget, recover_between};
use crate::cache::stamp;
use crate::error::Error;
use crate::format::{BufferKind, Superblock};
use crate::units::Lsn;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Reserved, Sector, flush, write_all_at};

/// What a volume becomes.
#[derive(Debug)]
pub struct NewVolume<'v> {
    /// Its superblock, with another place of the journal: blocks that are free on the old volume.
    pub superblock: &'v Superblock,
    /// The cycle that its journal begins with: nothing on the volume may carry a later position.
    pub cycle: u32,
    /// What changes in blocks that are in use, and in headers but the first superblock.
    pub images: &'v [BlockImage],
    /// Whether the images go to their places ahead of the switch, and not through the journal: what was there has
    /// to be kept elsewhere, as a cut leaves neither volume.
    pub in_place: bool,
}

/// Makes a clean volume another one: the old one or the new one is there, wherever this is cut. `prepared` are
/// contents of blocks that are free on the old volume; they are written first, as they come.
///
/// # Errors
/// The new journal is too short for so much: nothing was changed then. The device failed; it is open for change; or
/// what `prepared` says.
pub fn switch_volume<E: From<Error>>(
    device: &Arc<dyn BlockDevice>,
    new: &NewVolume<'_>,
    prepared: &mut dyn Iterator<Item = Result<BlockImage, E>>,
) -> Result<(), E> {
    let device = &Reserved::new(Arc::clone(device)).map_err(Error::from)?;
    if !new.in_place {
        check_length(new.superblock, new.images)?;
    }
    for image in prepared {
        write(device, new, &image?)?;
    }
    Ok(switch(device, new)?)
}

fn write(
    device: &Arc<dyn BlockDevice>,
    new: &NewVolume<'_>,
    image: &BlockImage,
) -> Result<(), Error> {
    let bytes = image.stamped(Lsn::new(new.cycle, 0), &new.superblock.geometry());
    Ok(write_all_at(device.as_ref(), image.sector, &bytes)?)
}

fn switch(device: &Arc<dyn BlockDevice>, new: &NewVolume<'_>) -> Result<(), Error> {
    let (superblock, geometry) = (new.superblock, new.superblock.geometry());
    let mut ends = renew(device, superblock, new.cycle)?;
    if new.in_place {
        new.images.iter().try_for_each(|image| write(device, new, image))?;
        flush(device.as_ref())?;
    } else {
        ends = log_images(device, superblock, &ends, new.images)?;
    }
    let mut sector = vec![0; geometry.sector_size()];
    superblock.encode(&mut sector);
    stamp(BufferKind::Superblock, &mut sector, superblock.lsn, &geometry);
    write_all_at(device.as_ref(), Sector(0), &sector)?;
    flush(device.as_ref())?;
    recover_between(ReplayTarget::Device, device, superblock, &ends, &mut |_| {}).map(drop)
}

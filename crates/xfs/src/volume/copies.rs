//! The copies of the superblock in all groups but the first. They are only looked at when that one
//! is lost, so they may be written after a change of it is durable.

use crate::cache::stamp;
use crate::error::Error;
use crate::format::{BufferKind, Superblock};
use crate::units::{AgNumber, Lsn};
use undercroft_block::{BlockDevice, flush, write_all_at};

/// Writes all copies.
pub(crate) fn write_copies(device: &dyn BlockDevice, superblock: &Superblock) -> Result<(), Error> {
    let geometry = superblock.geometry();
    let mut bytes = vec![0; geometry.sector_size()];
    superblock.encode(&mut bytes);
    stamp(BufferKind::Superblock, &mut bytes, Lsn(0), &geometry);
    for ag in (1..geometry.ag_count).map(AgNumber) {
        write_all_at(device, geometry.header_sector(ag, 0), &bytes)?;
    }
    Ok(flush(device)?)
}

//! The copies of the superblock in all groups but the first. They are only looked at when that one
//! is lost, so they are written after a change of it is durable. A crash may come between: the next
//! opening for changes finds the first of them old then, which is written last.

use crate::cache::stamp;
use crate::error::Error;
use crate::format::{BufferKind, Superblock};
use crate::units::{AgNumber, Lsn};
use undercroft_block::{BlockDevice, flush, read_exact_at, write_all_at};

/// The copy that is looked at.
const FIRST: AgNumber = AgNumber(1);

/// Writes all copies.
pub(crate) fn write_copies(device: &dyn BlockDevice, superblock: &Superblock) -> Result<(), Error> {
    let geometry = superblock.geometry();
    let mut bytes = vec![0; geometry.sector_size()];
    superblock.encode(&mut bytes);
    stamp(BufferKind::Superblock, &mut bytes, Lsn(0), &geometry);
    let write = |ag| write_all_at(device, geometry.header_sector(ag, 0), &bytes);
    (FIRST.0 + 1..geometry.ag_count).map(AgNumber).try_for_each(write)?;
    flush(device)?;
    if geometry.ag_count > FIRST.0 {
        write(FIRST)?;
    }
    Ok(flush(device)?)
}

/// Writes all copies if a change of size, label or UUID was interrupted before it had: by us, or by
/// a kernel, which replays such a change and leaves the copies as they are. One that cannot be read
/// is damage, and left to checks.
pub(crate) fn complete_copies(
    device: &dyn BlockDevice,
    superblock: &Superblock,
) -> Result<(), Error> {
    if superblock.ag_count <= FIRST.0 {
        return Ok(());
    }
    let geometry = superblock.geometry();
    let mut bytes = vec![0; geometry.sector_size()];
    read_exact_at(device, geometry.header_sector(FIRST, 0), &mut bytes)?;
    match Superblock::decode(&bytes) {
        Ok(copy) if identity(&copy) != identity(superblock) => write_copies(device, superblock),
        _ => Ok(()),
    }
}

/// What `set` and `grow` change.
fn identity(superblock: &Superblock) -> impl PartialEq + use<> {
    let Superblock { uuid, label, blocks, ag_count, .. } = superblock;
    // That of the metadata is in the superblock only where it is another one.
    (*uuid, superblock.geometry().meta_uuid, *label, *blocks, *ag_count)
}

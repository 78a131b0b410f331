//! The copies of the superblock in all groups but the first. Mounts do not look at them, but
//! `xfs_repair` takes the size of a volume from most of them: one that is larger is written ahead of
//! the change that makes the volume so, any other change behind it. A crash between the two, or a
//! kernel that replays the change and leaves the copies, makes them old: each opening for changes
//! looks at them.

use crate::cache::stamp;
use crate::error::Error;
use crate::format::{BufferKind, Superblock};
use crate::units::{AgNumber, Lsn};
use std::sync::Arc;
use undercroft_block::{Bio, BlockDevice, Buffer, Plug, Waiter, flush, write_all_at};

/// The first group with a copy.
const FIRST: AgNumber = AgNumber(1);

/// Copies that are read at a time.
const AT_ONCE: u32 = 4096;

/// Writes all copies.
pub(crate) fn write_copies(device: &dyn BlockDevice, superblock: &Superblock) -> Result<(), Error> {
    let geometry = superblock.geometry();
    let mut bytes = vec![0; geometry.sector_size()];
    superblock.encode(&mut bytes);
    stamp(BufferKind::Superblock, &mut bytes, Lsn(0), &geometry);
    let write = |ag| write_all_at(device, geometry.header_sector(ag, 0), &bytes);
    (FIRST.0..geometry.ag_count).map(AgNumber).try_for_each(write)?;
    Ok(flush(device)?)
}

/// Writes all copies again if one of them is not what the superblock says: a change was interrupted
/// before it had written them, by us or by a kernel. One that cannot be read is damage, and left to
/// checks.
pub(crate) fn complete_copies(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
) -> Result<(), Error> {
    let geometry = superblock.geometry();
    let mut next = FIRST.0;
    while next < geometry.ag_count {
        let end = next.saturating_add(AT_ONCE).min(geometry.ag_count);
        let plug = Plug::new(device);
        let reads: Vec<Waiter> = (next..end)
            .map(|ag| {
                let buffer = Buffer::zeroed(geometry.sector_size());
                let sector = geometry.header_sector(AgNumber(ag), 0);
                let (bio, waiter) = Bio::read(sector, buffer).waited();
                plug.submit(bio);
                waiter
            })
            .collect();
        drop(plug);
        for read in reads {
            let bytes = read.wait().into_buffer()?;
            let copy = Superblock::decode(&bytes);
            if copy.is_ok_and(|copy| identity(&copy) != identity(superblock)) {
                return write_copies(device.as_ref(), superblock);
            }
        }
        next = end;
    }
    Ok(())
}

/// What a change that may be interrupted makes different.
fn identity(superblock: &Superblock) -> impl PartialEq + use<> {
    let Superblock { uuid, label, blocks, ag_count, ag_blocks, log_start, .. } = superblock;
    // That of the metadata is in the superblock only where it is another one.
    let meta_uuid = superblock.geometry().meta_uuid;
    (*uuid, meta_uuid, *label, *blocks, *ag_count, *ag_blocks, *log_start)
}

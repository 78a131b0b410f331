//! The contents of files moved out of what goes.
//!
//! The mappings there come a window at a time, in the order of the device, and all reads of a window
//! are under way at once. Each piece then moves in one transaction, which the journal holds until
//! the copy is durable: a crash leaves the old mapping or the new one, and what is left to do is
//! what still has its mapping there.

use super::file_block;
use super::file_data::FileData;
use super::mappings::Mappings;
use super::size::Size;
use crate::error::Error;
use crate::format::{FileType, RmapFlags, RmapRecord};
use crate::inode::ForkKind;
use crate::units::AgNumber;
use crate::volume::Volume;
use std::sync::Arc;
use undercroft_block::{Bio, Buffer, Plug};

/// Moves all contents of files out of what goes when the volume gets this size; the volume gives
/// out no space there. `moved` is told the blocks of each window.
pub(super) fn move_out(
    volume: &Volume,
    size: Size,
    moved: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut data = FileData::new(volume, size);
    let mut mappings = Mappings::new(volume, size);
    while let Some((ag, records)) = mappings.window()? {
        data.enter_group(ag);
        let copies = read(volume, ag, &records)?;
        for (record, copy) in records.iter().zip(&copies) {
            move_record(volume, size, &mut data, ag, record, copy.as_ref())?;
        }
        data.flush();
        moved(records.iter().map(|record| u64::from(record.len)).sum());
    }
    Ok(())
}

/// Reads the blocks of mappings, all at once; none of those without content.
fn read(
    volume: &Volume,
    ag: AgNumber,
    records: &[RmapRecord],
) -> Result<Vec<Option<Arc<Buffer>>>, Error> {
    let geometry = volume.geometry();
    let plug = Plug::new(volume.cache().device());
    let mut waiters = Vec::with_capacity(records.len());
    for record in records {
        // Buffers of metadata are read, and verified, by themselves.
        let other = RmapFlags::UNWRITTEN | RmapFlags::BMBT_BLOCK | RmapFlags::ATTR_FORK;
        waiters.push((!record.flags.intersects(other)).then(|| {
            let buffer = Buffer::zeroed((record.len as usize) << geometry.block_log);
            let sector = geometry.ag_sector(ag, record.start);
            let (bio, waiter) = Bio::read(sector, buffer).waited();
            plug.submit(bio);
            waiter
        }));
    }
    plug.flush();
    let arrived = waiters
        .into_iter()
        .map(|waiter| waiter.map(|waiter| Ok(Arc::new(waiter.wait().into_buffer()?))).transpose());
    arrived.collect()
}

fn move_record(
    volume: &Volume,
    size: Size,
    data: &mut FileData<'_>,
    ag: AgNumber,
    record: &RmapRecord,
    copy: Option<&Arc<Buffer>>,
) -> Result<(), Error> {
    let Some(number) = record.owner.as_inode() else { return Ok(()) };
    let geometry = volume.geometry();
    let start = geometry.fs_block(ag, record.start);
    let attribute = record.flags.contains(RmapFlags::ATTR_FORK);
    let kind = if attribute { ForkKind::Attr } else { ForkKind::Data };
    if record.flags.contains(RmapFlags::BMBT_BLOCK) {
        return file_block::move_tree_block(volume, number, kind, start);
    }
    let file_type = volume.inode(number)?.read().file_type();
    match (kind, file_type) {
        (ForkKind::Data, FileType::Directory | FileType::Symlink) | (ForkKind::Attr, _) => {
            file_block::move_blocks(volume, size, number, kind, record)
        }
        _ => data.move_extent(number, start, record, copy),
    }
}

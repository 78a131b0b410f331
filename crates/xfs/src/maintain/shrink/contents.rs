//! The contents of files moved out of what goes.
//!
//! The reverse mappings there are read a window at a time, in the order of the device, with all
//! reads of a window under way at once. Each piece then moves in one transaction, which the journal
//! holds until the copy is durable: a crash leaves the old mapping or the new one, and what is left
//! to do is what the reverse mappings still have.

use super::file_block;
use super::file_data::FileData;
use super::size::{DoomedPart, Size};
use crate::error::Error;
use crate::format::{FileType, RmapFlags, RmapRecord};
use crate::group_tree::owners;
use crate::inode::ForkKind;
use crate::units::AgBlock;
use crate::volume::Volume;
use std::ops::ControlFlow;
use std::sync::Arc;
use undercroft_block::{Bio, Buffer, Plug};

/// Bytes of a window.
const WINDOW_BYTES: u64 = 32 << 20;

/// Most mappings of a window.
const WINDOW_RECORDS: usize = 4096;

/// Moves all contents of files out of what goes when the volume gets this size; the volume gives
/// out no space there. `moved` is told the blocks of each window.
pub(super) fn move_out(
    volume: &Volume,
    size: Size,
    moved: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let mut data = FileData::new(volume, size);
    for part in size.doomed(volume.geometry()) {
        data.enter_group();
        loop {
            let records = window(volume, part)?;
            if records.is_empty() {
                break;
            }
            let copies = read(volume, part, &records)?;
            for (record, copy) in records.iter().zip(&copies) {
                move_record(volume, size, &mut data, part, record, copy.as_ref())?;
            }
            data.flush();
            moved(records.iter().map(|record| u64::from(record.len)).sum());
        }
    }
    Ok(())
}

/// The first mappings of files in a part of a group.
fn window(volume: &Volume, part: DoomedPart) -> Result<Vec<RmapRecord>, Error> {
    let most = (WINDOW_BYTES >> volume.geometry().block_log).max(1) as u32;
    let (mut records, mut left) = (Vec::new(), most);
    owners(volume, part.ag, AgBlock(part.start), part.len, |record| {
        if record.owner.as_inode().is_some() {
            let len = record.len.min(left);
            left -= len;
            records.push(RmapRecord { len, ..record });
        }
        let full = left == 0 || records.len() == WINDOW_RECORDS;
        if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(records)
}

/// Reads the blocks of mappings, all at once; none of those without content.
fn read(
    volume: &Volume,
    part: DoomedPart,
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
            let sector = geometry.ag_sector(part.ag, record.start);
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
    part: DoomedPart,
    record: &RmapRecord,
    copy: Option<&Arc<Buffer>>,
) -> Result<(), Error> {
    let Some(number) = record.owner.as_inode() else { return Ok(()) };
    let geometry = volume.geometry();
    let start = geometry.fs_block(part.ag, record.start);
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

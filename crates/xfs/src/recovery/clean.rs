//! The end of recovery: true counters in the superblock, and a journal that says that nothing is
//! left to do (docs/format/journal/replay.md#after-the-second-pass).

use crate::bytes::{be16, be32, put_be16, put_be32};
use crate::error::Error;
use crate::format::log_record::MIN_BUFFER;
use crate::format::{Agf, Agi, BufferKind, Counters, Header, HeaderError, Superblock};
use crate::geometry::Geometry;
use crate::log::LogArea;
use crate::log::LogShape;
use crate::log::{LogEnds, LogState};
use crate::log::{RecordStream, Seal};
use crate::units::{AgNumber, Lsn};
use crate::volume::read_superblock;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector, flush, read_exact_at, write_all_at};
use uuid::Uuid;

/// Completes the superblock of a volume on which everything was replayed, then ends its journal.
/// `last` is the position of the last record.
pub(super) fn mark_clean(
    device: &Arc<dyn BlockDevice>,
    ends: &LogEnds,
    last: Lsn,
) -> Result<(), Error> {
    // Replay may have changed it, sizes included.
    let superblock = read_superblock(device)?;
    let geometry = superblock.geometry();
    let counters = count(device.as_ref(), &geometry)?;
    if counters.free_blocks > geometry.blocks || counters.free_inodes > counters.inodes {
        let what = format!(
            "the groups count {} free of {} blocks, {} free of {} inodes",
            counters.free_blocks, geometry.blocks, counters.free_inodes, counters.inodes
        );
        let (structure, sector) = ("group headers", Sector(0));
        return Err(Error::Block { structure, sector, what });
    }
    flush(device.as_ref())?;
    write_superblock(device.as_ref(), &geometry, counters, last)?;
    flush(device.as_ref())?;
    write_unmount_record(device, &superblock, ends, superblock.uuid)?;
    Ok(flush(device.as_ref())?)
}

/// Clears what the superblock says of a journal that is empty now, and of quotas that were not
/// maintained.
pub(super) fn clear_flags(device: &dyn BlockDevice, geometry: &Geometry) -> Result<(), Error> {
    let mut bytes = vec![0; geometry.sector_size()];
    read_exact_at(device, Sector(0), &mut bytes)?;
    if be16(&bytes, 176) == 0 && be32(&bytes, 220) == 0 {
        return Ok(());
    }
    put_be16(&mut bytes, 176, 0);
    put_be32(&mut bytes, 220, 0);
    if let Some(header) = Header::of(BufferKind::Superblock) {
        let lsn = header.lsn(&bytes).unwrap_or_default();
        header.stamp(&mut bytes, lsn, geometry.block_size());
    }
    write_all_at(device, Sector(0), &bytes)?;
    Ok(flush(device)?)
}

/// Adds up the counters of the group headers.
fn count(device: &dyn BlockDevice, geometry: &Geometry) -> Result<Counters, Error> {
    let mut sum = Counters::default();
    for ag in (0..geometry.ag_count).map(AgNumber) {
        let agf = read_header(device, geometry, ag, 1)?;
        Agf::verify(&agf, geometry, ag).map_err(|defect| damaged(geometry, ag, 1, defect))?;
        let agf = Agf::decode(&agf, geometry);
        let agi = read_header(device, geometry, ag, 2)?;
        Agi::verify(&agi, geometry, ag).map_err(|defect| damaged(geometry, ag, 2, defect))?;
        sum.add(&agf, &Agi::decode(&agi, geometry));
    }
    Ok(sum)
}

/// Reads header 1 (AGF) or 2 (AGI) of a group.
fn read_header(
    device: &dyn BlockDevice,
    geometry: &Geometry,
    ag: AgNumber,
    index: u32,
) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; geometry.sector_size()];
    read_exact_at(device, geometry.header_sector(ag, index), &mut bytes)?;
    Ok(bytes)
}

fn damaged(geometry: &Geometry, ag: AgNumber, index: u32, defect: HeaderError) -> Error {
    let structure = if index == 1 { "AGF" } else { "AGI" };
    let sector = geometry.header_sector(ag, index);
    Error::Header { structure, sector, defect }
}

/// Writes what changes in the superblock; the rest of it stays as it is.
fn write_superblock(
    device: &dyn BlockDevice,
    geometry: &Geometry,
    counters: Counters,
    last: Lsn,
) -> Result<(), Error> {
    let mut bytes = vec![0; geometry.sector_size()];
    read_exact_at(device, Sector(0), &mut bytes)?;
    counters.encode(&mut bytes);
    // Quota records were not replayed: without these flags, quotas are counted anew.
    put_be16(&mut bytes, 176, 0);
    // Features of the items in the journal, which has none now.
    put_be32(&mut bytes, 220, 0);
    if let Some(header) = Header::of(BufferKind::Superblock) {
        header.stamp(&mut bytes, last, geometry.block_size());
    }
    Ok(write_all_at(device, Sector(0), &bytes)?)
}

/// Writes the record that says that the volume was unmounted, at the head; returns the ends of the
/// journal behind it.
pub(crate) fn write_unmount_record(
    device: &Arc<dyn BlockDevice>,
    superblock: &Superblock,
    ends: &LogEnds,
    uuid: Uuid,
) -> Result<LogEnds, Error> {
    let geometry = superblock.geometry();
    let (Some(area), Some(head)) = (LogArea::new(device, &geometry), ends.head) else {
        return Ok(ends.clone());
    };
    let (previous_block, buffer_bytes) = ends.last.unwrap_or((u32::MAX, MIN_BUFFER));
    let shape = LogShape::new(&geometry, 1 << superblock.log_sector_log, buffer_bytes);
    let seal = Seal { uuid, position: head, tail: head, previous_block };
    let sealed = RecordStream::unmount(shape, head.block()).seal(&seal);
    area.write(head.block().into(), &sealed.bytes)?;
    Ok(LogEnds {
        state: LogState::Clean,
        head: Some(sealed.end),
        tail: sealed.end,
        uuid: Some(uuid),
        last: Some((sealed.last_block, shape.buffer_bytes)),
        torn: None,
        contradiction: None,
    })
}

//! The end of recovery: true counters in the superblock, and a journal that says that nothing is
//! left to do (journal reference, sections 5.5 and 5.6).

use super::area::LogArea;
use super::ends::LogEnds;
use crate::bytes::{be16, be32, put_be16, put_be32, put_be64};
use crate::error::Error;
use crate::format::log_record::{LOG_BLOCK, MIN_BUFFER};
use crate::format::log_record_seal::seal_record;
use crate::format::{
    Agf, Agi, BufferKind, Header, HeaderError, LogClient, LogRecordHeader, OperationFlags,
    OperationHeader, Superblock,
};
use crate::geometry::Geometry;
use crate::units::{AgNumber, Lsn};
use crate::volume::read_superblock;
use std::sync::Arc;
use undercroft_block::{BlockDevice, Sector, flush, read_exact_at, write_all_at};

/// Counters that the superblock repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    inodes: u64,
    free_inodes: u64,
    free_blocks: u64,
}

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
    let device = device.as_ref();
    let counters = count(device, &geometry)?;
    if counters.free_blocks > geometry.blocks || counters.free_inodes > counters.inodes {
        let what = format!(
            "the groups count {} free of {} blocks, {} free of {} inodes",
            counters.free_blocks, geometry.blocks, counters.free_inodes, counters.inodes
        );
        let (structure, sector) = ("group headers", Sector(0));
        return Err(Error::Block { structure, sector, what });
    }
    flush(device)?;
    write_superblock(device, &geometry, counters, last)?;
    flush(device)?;
    write_unmount_record(device, &superblock, ends)?;
    Ok(flush(device)?)
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

/// Adds up what the headers of the groups say.
fn count(device: &dyn BlockDevice, geometry: &Geometry) -> Result<Counters, Error> {
    let mut sum = Counters::default();
    for ag in (0..geometry.ag_count).map(AgNumber) {
        let agf = read_header(device, geometry, ag, 1)?;
        Agf::verify(&agf, geometry, ag).map_err(|error| damaged(geometry, ag, 1, &error))?;
        let agf = Agf::decode(&agf, geometry);
        let blocks = [agf.free_blocks, agf.free_list_count, agf.tree_blocks];
        sum.free_blocks += blocks.map(u64::from).iter().sum::<u64>();
        let agi = read_header(device, geometry, ag, 2)?;
        Agi::verify(&agi, geometry, ag).map_err(|error| damaged(geometry, ag, 2, &error))?;
        let agi = Agi::decode(&agi, geometry);
        sum.inodes += u64::from(agi.count);
        sum.free_inodes += u64::from(agi.free_count);
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

fn damaged(geometry: &Geometry, ag: AgNumber, index: u32, error: &HeaderError) -> Error {
    let structure = if index == 1 { "AGF" } else { "AGI" };
    let sector = geometry.header_sector(ag, index);
    Error::Block { structure, sector, what: error.to_string() }
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
    put_be64(&mut bytes, 128, counters.inodes);
    put_be64(&mut bytes, 136, counters.free_inodes);
    put_be64(&mut bytes, 144, counters.free_blocks);
    // Quota records were not replayed: without these flags, quotas are counted anew.
    put_be16(&mut bytes, 176, 0);
    // Features of the items in the journal, which has none now.
    put_be32(&mut bytes, 220, 0);
    if let Some(header) = Header::of(BufferKind::Superblock) {
        header.stamp(&mut bytes, last, geometry.block_size());
    }
    Ok(write_all_at(device, Sector(0), &bytes)?)
}

/// Writes the record that says that the volume was unmounted, at the head.
fn write_unmount_record(
    device: &dyn BlockDevice,
    superblock: &Superblock,
    ends: &LogEnds,
) -> Result<(), Error> {
    let geometry = superblock.geometry();
    let (Some(area), Some(head)) = (LogArea::new(device, &geometry), ends.head) else {
        return Ok(());
    };
    let (previous_block, buffer) = ends.last.unwrap_or((u32::MAX, MIN_BUFFER));
    let header = LogRecordHeader {
        operations: 1,
        previous_block,
        ..LogRecordHeader::new(geometry.uuid, head, head, buffer.max(MIN_BUFFER))
    };
    let log_sector = 1_usize << superblock.log_sector_log.max(9);
    let unit = log_sector.max(geometry.log_stripe_unit as usize);
    let headers = header.header_blocks() as usize * LOG_BLOCK;
    let mut record = vec![0; (headers + LOG_BLOCK).next_multiple_of(unit)];
    let operation = OperationHeader {
        transaction: head.block(),
        len: UNMOUNT_PAYLOAD.len() as u32,
        client: LogClient::Log,
        flags: OperationFlags::UNMOUNT,
    };
    let (first, payload) = record[headers..].split_at_mut(OperationHeader::LEN);
    operation.encode(first);
    payload[..UNMOUNT_PAYLOAD.len()].copy_from_slice(&UNMOUNT_PAYLOAD);
    let before_end = area.blocks - u64::from(head.block());
    seal_record(&header, &mut record, usize::try_from(before_end).unwrap_or(usize::MAX));
    area.write(head.block().into(), &record)
}

/// What the operation of an unmount record carries.
const UNMOUNT_PAYLOAD: [u8; 8] = *b"nU\0\0\0\0\0\0";

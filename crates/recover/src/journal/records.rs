//! Records of the journal, in the order of time.

use std::ops::Range;

use undercroft_xfs_format::log_record::LOG_BLOCK;
use undercroft_xfs_format::log_record_seal::{restore_words, verify_record};
use undercroft_xfs_format::{Geometry, LogRecordHeader};

use crate::disk::Disk;
use crate::progress::{Progress, Step};
use crate::stream::read_in_order;

/// A whole record.
pub(super) struct Record<'r> {
    pub(super) header: &'r LogRecordHeader,
    pub(super) data: Vec<u8>,
    /// The record before it is missing.
    pub(super) is_behind_a_gap: bool,
}

/// A header that was found.
struct Found {
    header: LogRecordHeader,
    /// Block of the journal.
    block: u64,
    blocks: u64,
}

/// Reads the journal twice: for the headers, then for the records in their order.
pub(super) fn read(disk: &Disk, progress: &mut Progress<'_>, mut visit: impl FnMut(Record<'_>)) {
    let geometry = &disk.geometry;
    let length = u64::from(geometry.log_blocks) << (geometry.block_log - 9);
    // A journal on another device is not looked at.
    if geometry.log_start.is_null() || geometry.log_start.0 == 0 {
        return;
    }
    let start = geometry.sector(geometry.log_start).0;
    progress.begin(Step::Journal, 2 * length * 512);
    let mut found = headers(disk, start, length, progress);
    found.sort_by_key(|found| found.header.lsn.0);
    let ranges = found.iter().flat_map(|found| places(start, length, found)).flatten();
    let (mut index, mut bytes, mut end) = (0, Vec::new(), None);
    let mut is_whole = true;
    read_in_order(&disk.device, ranges, 1, |sectors, piece| {
        let Some(Found { header, block, blocks }) = found.get(index) else { return };
        match piece {
            Ok(piece) => bytes.extend_from_slice(piece),
            Err(_) => {
                is_whole = false;
                bytes.resize(bytes.len() + ((sectors.end - sectors.start) * 512) as usize, 0);
            }
        }
        progress.read(piece_len(*blocks, bytes.len()));
        if (bytes.len() as u64) < blocks * 512 {
            return;
        }
        let record = std::mem::take(&mut bytes);
        if is_whole && let Some(data) = unpack(header, record) {
            visit(Record { header, data, is_behind_a_gap: end != Some(*block) });
            end = Some((block + blocks) % length);
        }
        (index, is_whole) = (index + 1, true);
    });
}

/// What counts as read when a record has come.
const fn piece_len(blocks: u64, so_far: usize) -> u64 {
    if so_far as u64 >= blocks * 512 { blocks * 512 } else { 0 }
}

/// The sectors of a record: two ranges where it goes on at the start of the journal.
fn places(start: u64, length: u64, found: &Found) -> [Option<Range<u64>>; 2] {
    let end = found.block + found.blocks;
    if end <= length {
        return [Some(start + found.block..start + end), None];
    }
    [Some(start + found.block..start + length), Some(start..start + end - length)]
}

fn headers(disk: &Disk, start: u64, length: u64, progress: &mut Progress<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    read_in_order(&disk.device, std::iter::once(start..start + length), 1, |sectors, bytes| {
        let Ok(bytes) = bytes else { return };
        progress.read(bytes.len() as u64);
        for (index, block) in bytes.chunks_exact(LOG_BLOCK).enumerate() {
            let at = sectors.start - start + index as u64;
            found.extend(header(&disk.geometry, block, at, length));
        }
    });
    found
}

/// A header that can be one: of this volume, at its own place.
fn header(geometry: &Geometry, block: &[u8], at: u64, length: u64) -> Option<Found> {
    let header = LogRecordHeader::decode(block)?;
    let blocks = header.blocks();
    let is_one = header.check(geometry.uuid).is_ok()
        && u64::from(header.lsn.block()) == at
        && header.lsn.cycle() == header.cycle
        && header.operations > 0
        && blocks < length;
    is_one.then_some(Found { header, block: at, blocks })
}

/// The data of a record whose checksum is right.
fn unpack(header: &LogRecordHeader, mut record: Vec<u8>) -> Option<Vec<u8>> {
    let headers = header.header_blocks() as usize;
    if verify_record(&record, headers).is_err() {
        return None;
    }
    restore_words(&mut record, headers);
    record.drain(..headers * LOG_BLOCK);
    Some(record)
}

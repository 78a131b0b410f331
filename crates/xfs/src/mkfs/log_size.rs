//! Least length of the log (journal reference, sections 6.4 and 6.6).

use super::reservation::{Reservation, large_attribute, reservations};
use crate::format::log_record::{LOG_BLOCK, MAX_BUFFER, header_blocks};
use crate::geometry::Geometry;

/// `mkfs.xfs` never makes a log shorter than this many blocks.
const MIN_BLOCKS: u64 = 512;
/// Volumes of a gigabyte have at least this log, in bytes.
const MIN_BYTES: u64 = 10 << 20;

/// Least length of the log in blocks that every kernel with these features mounts, whatever its
/// mount options. Of the log fields of `geometry` only the stripe unit counts.
#[must_use]
pub fn minimum_log_blocks(geometry: &Geometry) -> u64 {
    let largest = largest(geometry);
    let log_block = LOG_BLOCK as u64;
    let unit = u64::from(geometry.log_stripe_unit);
    let bytes = record_space(largest.bytes, geometry) * largest.count;
    let needed = bytes.div_ceil(log_block);
    let log_blocks = if unit > 1 {
        let unit = unit / log_block;
        3 * (needed.next_multiple_of(unit) + 2 * unit)
    } else {
        3 * (needed + 2 * 512)
    };
    let blocks = geometry.blocks_for(log_blocks * log_block);
    let large_volume = geometry.blocks >= geometry.blocks_for(1 << 30);
    let floor = if large_volume { geometry.blocks_for(MIN_BYTES) } else { 0 };
    blocks.max(MIN_BLOCKS).max(floor)
}

fn largest(geometry: &Geometry) -> Reservation {
    let chain = reservations(geometry)
        .into_iter()
        .max_by_key(|kind| kind.bytes * kind.count)
        .expect("there are kinds of transactions");
    // The kernel compares one attribute change with a whole chain of the others.
    let attribute = large_attribute(geometry);
    if attribute.bytes > chain.bytes * chain.count { attribute } else { chain }
}

/// Log space of a transaction with the headers of its operations and records, for the largest
/// record buffers.
fn record_space(bytes: u64, geometry: &Geometry) -> u64 {
    const OPERATION: u64 = 12;
    const TRANSACTION: u64 = 16;
    let headers = u64::from(header_blocks(MAX_BUFFER)) * LOG_BLOCK as u64;
    let space = u64::from(MAX_BUFFER) - headers;
    let padding = match geometry.log_stripe_unit {
        0 | 1 => 1 << geometry.sector_log,
        unit => u64::from(unit),
    };
    let mut total = bytes + OPERATION + TRANSACTION + OPERATION;
    let mut records = total.div_ceil(space);
    total += OPERATION * records;
    while total.div_ceil(space) > records {
        total += OPERATION;
        records += 1;
    }
    total + headers * (records + 1) + 2 * padding
}

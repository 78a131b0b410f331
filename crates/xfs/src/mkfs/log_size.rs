//! Least length of the log (docs/format/journal/reservations.md#least-length).

use crate::format::log_record::{LOG_BLOCK, MAX_BUFFER, header_blocks};
use crate::geometry::Geometry;
use crate::log::{Reservation, large_attribute, reservations};

/// `mkfs.xfs` never makes a log shorter than this many blocks.
const MIN_BLOCKS: u64 = 512;
/// Volumes of a gigabyte have at least this log, in bytes.
const MIN_BYTES: u64 = 10 << 20;

/// Least length of the log in blocks that every kernel with these features mounts, with any mount
/// options. Of the log fields of `geometry` only the stripe unit counts.
#[must_use]
pub fn minimum_log_blocks(geometry: &Geometry) -> u64 {
    let large_volume = geometry.blocks >= geometry.blocks_for(1 << 30);
    let floor = if large_volume { geometry.blocks_for(MIN_BYTES) } else { 0 };
    transaction_minimum(geometry).max(MIN_BLOCKS).max(floor)
}

/// The space that the largest transactions need.
fn transaction_minimum(geometry: &Geometry) -> u64 {
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
    geometry.blocks_for(log_blocks * log_block)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mkfs::{Feature, MkfsOptions, Preset, plan};
    use uuid::Uuid;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn log_of(preset: Preset, block_size: u32, size: u64) -> u32 {
        let options = MkfsOptions { preset, block_size, ..MkfsOptions::new(size, Uuid::nil()) };
        plan(&options).unwrap().log_blocks
    }

    /// Measured with `mkfs.xfs` (docs/format/geometry.md#least-journal).
    #[test]
    fn least_logs_of_small_volumes() {
        let blocks = [1024, 2048, 4096, 8192, 16_384];
        let logs = |preset| blocks.map(|block| log_of(preset, block, 250 * MIB));
        assert_eq!(logs(Preset::Linux6_1), [3527, 2484, 1368, 1128, 1002]);
        assert_eq!(logs(Preset::Linux6_12), [5363, 4266, 3075, 2810, 2671]);
        assert_eq!(logs(Preset::Default), [4862, 3172, 2001, 1766, 1429]);
        assert_eq!(log_of(Preset::Linux6_1, 32_768, 250 * MIB), 548);
        assert_eq!(log_of(Preset::Linux6_1, 65_536, 250 * MIB), 512);
        assert_eq!(log_of(Preset::Default, 32_768, 250 * MIB), 1157);
        assert_eq!(log_of(Preset::Default, 65_536, 2 * GIB), 1127);
    }

    /// docs/format/journal/reservations.md#least-length.
    #[test]
    fn least_logs_of_large_volumes() {
        let least = |change: &dyn Fn(&mut MkfsOptions)| {
            let mut options = MkfsOptions::new(100 * GIB, Uuid::nil());
            change(&mut options);
            transaction_minimum(&plan(&options).unwrap().geometry())
        };
        let off = |features: &[Feature]| features.iter().map(|feature| (*feature, false)).collect();
        assert_eq!(least(&|_| ()), 2001);
        assert_eq!(
            least(&|options| options.features = off(&[Feature::Parent, Feature::Exchange])),
            3693
        );
        let none = [Feature::Parent, Feature::Exchange, Feature::Rmapbt, Feature::Reflink];
        assert_eq!(least(&|options| options.features = off(&none)), 4049);
        assert_eq!(least(&|options| options.log_stripe_unit = Some(256 << 10)), 4032);
        assert_eq!(least(&|options| options.sector_size = 4096), 1650);
        assert_eq!(least(&|options| options.block_size = 65_536), 1127);
        assert_eq!(least(&|options| options.dir_block_size = Some(65_536)), 5310);
    }
}

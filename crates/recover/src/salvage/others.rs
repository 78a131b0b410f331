//! Sectors that hold no file of the volume: its own metadata, what another volume wrote over it, and
//! what cannot be read.

use std::ops::Range;

use super::index::Index;
use super::judge::Taken;
use crate::scan::{Scan, Traces};
use crate::shape::Shape;
use crate::stream::joined;

/// The sectors, counted from the start of the volume. `capacity` is that of the device.
pub(super) fn taken(
    scan: &Scan,
    own: &Traces,
    shape: &Shape,
    index: &Index,
    capacity: u64,
) -> Taken {
    let mut all: Vec<Range<u64>> = index.metadata.clone();
    let relative = |range: Range<u64>| {
        range.start.saturating_sub(shape.start)..range.end.saturating_sub(shape.start)
    };
    all.extend(scan.unreadable.iter().cloned().map(relative));
    all.push(capacity.saturating_sub(shape.start)..u64::MAX);
    for other in scan.volumes.iter().filter(|other| other.uuid != own.uuid) {
        // One that starts elsewhere may be an image in a file.
        if let Some(theirs) = other.shape(capacity).filter(|theirs| theirs.start == shape.start) {
            let theirs_only = Index::new(other, theirs.start, &theirs.geometry);
            all.extend(theirs_only.metadata);
            let geometry = &theirs.geometry;
            if !geometry.log_start.is_null() {
                let first = geometry.sector(geometry.log_start).0;
                all.push(
                    first..first + (u64::from(geometry.log_blocks) << (geometry.block_log - 9)),
                );
            }
        }
    }
    all.retain(|range| range.start < range.end);
    all.sort_unstable_by_key(|range| range.start);
    Taken(joined(all))
}

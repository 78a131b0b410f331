//! The place of the new journal: free blocks side by side.

use undercroft_xfs::format::{Geometry, Superblock};
use undercroft_xfs::mkfs::minimum_log_blocks;
use undercroft_xfs::units::{AgBlock, AgNumber, FsBlock};

use crate::error::RepairError;
use crate::free::Free;

/// Whether kernels want a longer journal for the features of a superblock.
pub(super) fn is_short(superblock: &Superblock) -> bool {
    u64::from(superblock.log_blocks) < minimum_log_blocks(&superblock.geometry())
}

/// Gives a superblock a journal in free blocks, as long as the old one, or as kernels want it for the features, if
/// that is longer; where there is no room for that, as long as can be, but not shorter than they want it.
///
/// It never goes into the first group if it was not there: there its length decides the number of the root
/// directory.
///
/// # Errors
/// No group has room for the shortest.
pub(super) fn place(superblock: &mut Superblock, free: &[Free]) -> Result<(), RepairError> {
    let geometry = &superblock.geometry();
    let unit = (geometry.log_stripe_unit >> geometry.block_log).max(1);
    let least = minimum_log_blocks(geometry).next_multiple_of(unit.into()) as u32;
    let wanted = geometry.log_blocks.max(least);
    let (old, _) = geometry.split_block(geometry.log_start);
    let groups = (0..).map(AgNumber).zip(free);
    let groups = groups.filter(|(ag, _)| (ag.0 == 0) == (old.0 == 0));
    let places = groups.flat_map(|(ag, free)| {
        let blocks = free.blocks();
        free.records().map(move |extent| {
            let (start, len) = aligned(geometry, ag, (extent.start, extent.len), unit);
            (start, len / unit * unit, blocks)
        })
    });
    // Of those that are long enough one in the emptiest group, whose trees need room beside it.
    let best = places.max_by_key(|(start, len, blocks)| {
        ((*len).min(wanted), *blocks, std::cmp::Reverse((*len, *start)))
    });
    let best = best.map(|(start, len, _)| (start, len));
    let Some((start, len)) = best.filter(|(_, len)| *len >= least) else {
        let (blocks, longest) = (least, best.map_or(0, |(_, len)| len));
        let bytes = |blocks: u32| u64::from(blocks) << superblock.block_log;
        return Err(RepairError::NoJournal { bytes: bytes(blocks), longest: bytes(longest) });
    };
    (superblock.log_start, superblock.log_blocks) = (start, len.min(wanted));
    Ok(())
}

/// The part of an extent that begins with a whole unit of the volume.
fn aligned(
    geometry: &Geometry,
    ag: AgNumber,
    (start, len): (AgBlock, u32),
    unit: u32,
) -> (FsBlock, u32) {
    let first = geometry.fs_block(ag, start);
    let skipped = (first.0.next_multiple_of(unit.into()) - first.0).min(len.into()) as u32;
    (FsBlock(first.0 + u64::from(skipped)), len - skipped)
}

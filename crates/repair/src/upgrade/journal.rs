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
        let bytes = |blocks: u64| blocks << superblock.block_log;
        let (needed, longest) = (bytes(blocks.into()), bytes(longest.into()));
        let grow = bytes(growth(geometry, least + unit));
        return Err(RepairError::NoJournal { bytes: needed, longest, grow });
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

/// Blocks for the headers and first trees of a group.
const GROUP_BLOCKS: u32 = 64;

/// Blocks to grow a volume by, so that there is room for a journal in its last group.
fn growth(geometry: &Geometry, journal: u32) -> u64 {
    let last = geometry.ag_length(AgNumber(geometry.ag_count - 1));
    let room = journal.saturating_add(journal / 8).saturating_add(GROUP_BLOCKS);
    // What a group keeps free for its trees is 2 % of it at most.
    let room = room.saturating_add((last / 50).max(room / 50));
    if geometry.ag_count > 1 && last.saturating_add(room) <= geometry.ag_blocks {
        return room.into();
    }
    u64::from(geometry.ag_blocks - last) + u64::from(room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use undercroft_xfs::mkfs::{MkfsOptions, Preset, plan};
    use undercroft_xfs::units::AgBlock;
    use uuid::Uuid;

    fn free(extents: &[(u32, u32)]) -> Free {
        let records = extents.iter().map(|(start, len)| undercroft_xfs::format::AllocRecord {
            start: AgBlock(*start),
            len: *len,
        });
        Free::of_records(&records.collect::<Vec<_>>())
    }

    #[test]
    fn a_journal_goes_to_the_emptiest_group_with_room_for_it() {
        let options = MkfsOptions::new(1 << 30, Uuid::from_u128(3));
        let superblock = plan(&options).unwrap();
        let (wanted, least) = (superblock.log_blocks, minimum_log_blocks(&superblock.geometry()));
        let least = u32::try_from(least).unwrap();
        let place = |groups: [Free; 4]| {
            let mut new = superblock.clone();
            place(&mut new, &groups)
                .map(|()| (new.geometry().split_block(new.log_start), new.log_blocks))
        };
        // Never the first group, which had none.
        let groups =
            [&[(9, 60_000)][..], &[(70, wanted), (40_000, 9)], &[(9, wanted), (30_000, 5)], &[]];
        let found = place(groups.map(free)).unwrap();
        assert_eq!(found, ((AgNumber(1), AgBlock(70)), wanted));
        let short = [&[(9, 60_000)][..], &[(8, least - 1)], &[(9, least + 5)], &[]];
        let found = place(short.map(free)).unwrap();
        assert_eq!(found, ((AgNumber(2), AgBlock(9)), least + 5));
        let none = [&[(9, 60_000)][..], &[(8, least - 1)], &[], &[]];
        match place(none.map(free)) {
            Err(RepairError::NoJournal { bytes, longest, grow }) => {
                assert_eq!((bytes, longest), (u64::from(least) << 12, u64::from(least - 1) << 12));
                assert!(grow > bytes);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn kernels_want_longer_journals_for_some_features() {
        let options =
            MkfsOptions { preset: Preset::Linux6_1, ..MkfsOptions::new(250 << 20, Uuid::nil()) };
        let mut superblock = plan(&options).unwrap();
        assert!(!is_short(&superblock));
        superblock.features.ro_compat |= undercroft_xfs::format::RoCompat::RMAPBT;
        assert!(is_short(&superblock));
    }
}

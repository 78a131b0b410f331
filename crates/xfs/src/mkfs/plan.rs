//! From options to the superblock of an empty volume (docs/format/geometry.md).

use super::ag_static::StaticLayout;
use super::error::MkfsError;
use super::groups::{self, Groups, MIN_AG_BYTES, Stripe};
use super::log_size::minimum_log_blocks;
use super::options::MkfsOptions;
use super::sizes;
use crate::format::Superblock;
use crate::geometry::Geometry;
use crate::units::{AgBlock, AgInode, AgNumber, FsBlock};

const MIB: u64 = 1 << 20;
/// Volumes below this size get the least log.
const SMALL_VOLUME: u64 = 300 * MIB;
/// Other volumes get at least this log.
const REALISTIC_LOG: u64 = 64 * MIB;
/// One block of log for this many of the volume.
const LOG_SHARE: u64 = 2048;
const MAX_LOG_BLOCKS: u64 = 1 << 20;
const MAX_LOG_BYTES: u64 = 2048 * MIB - 10 * MIB;
/// Blocks that stay free in the group of the log, besides one, even if its free list needs less.
const MIN_BESIDE_LOG: u64 = 4;
/// Inode chunks that must fit the first group beside the log.
const CHUNKS_BESIDE_LOG: u64 = 4;

/// Plans a volume: its superblock before free lists are filled and inodes are made. It is marked in
/// progress, counts no inodes, and names the root directory and the realtime inodes at the places
/// where checkers expect them.
///
/// # Errors
///
/// The first option that is out of range or contradicts another.
pub fn plan(options: &MkfsOptions) -> Result<Superblock, MkfsError> {
    attempt(options).map_err(|error| with_true_range(error, options))
}

/// An error of the size or of the number of groups, with the range that is possible beside the other
/// options.
fn with_true_range(error: MkfsError, options: &MkfsOptions) -> MkfsError {
    match error {
        MkfsError::Range { option: option @ "size", value, max, unit, remedy, min } => {
            let min = minimum_size(options).unwrap_or(min);
            MkfsError::Range { option, value, min, max, unit, remedy }
        }
        MkfsError::LogTooLarge { .. } if is_automatic(options) => match minimum_size(options) {
            Ok(min) if options.size < min => sizes::size_range(options.size, min),
            _ => error,
        },
        MkfsError::Range { option: option @ "number of groups", value, min, max, unit, remedy } => {
            let fits = |count: &u64| {
                let ag_count = u32::try_from(*count).ok();
                attempt(&MkfsOptions { ag_count, ..options.clone() }).is_ok()
            };
            // With more groups than there can be the log has no room.
            let max = partition_point(min, max, fits).unwrap_or(max);
            MkfsError::Range { option, value, min, max, unit, remedy }
        }
        error => error,
    }
}

/// The last of the numbers from `low` to `high` that fits; all that fit come first.
fn partition_point(low: u64, high: u64, fits: impl Fn(&u64) -> bool) -> Option<u64> {
    let (mut low, mut high) = (low, high.checked_add(1)?);
    if low >= high || !fits(&low) {
        return None;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(&middle) { low = middle } else { high = middle }
    }
    Some(low)
}

/// Whether the number of groups is ours to choose.
const fn is_automatic(options: &MkfsOptions) -> bool {
    options.ag_count.is_none() && options.ag_size.is_none()
}

fn attempt(options: &MkfsOptions) -> Result<Superblock, MkfsError> {
    let mut superblock = sizes::superblock(options)?;
    let stripe = Stripe { unit: superblock.stripe_unit, width: superblock.stripe_width };
    let block_log = u32::from(superblock.block_log);
    // Groups of the size to come are as long as they are to be.
    let automatic = is_automatic(options) && options.grown_size.is_none();
    let mut limit = None;
    loop {
        let groups = groups::choose(options, block_log, stripe, limit)?;
        apply_groups(&mut superblock, groups);
        match place_log(&mut superblock, options) {
            Err(MkfsError::LogTooLarge { needed, .. })
                if automatic && groups.ag_count > fewest_groups(&superblock, needed) =>
            {
                limit = Some(groups.ag_count - 1);
            }
            placed => break placed?,
        }
    }
    place_root(&mut superblock)?;
    let geometry = superblock.geometry();
    let fixed = u64::from(StaticLayout::new(&geometry).blocks) * u64::from(superblock.ag_count);
    superblock.free_blocks = superblock.blocks - fixed - u64::from(superblock.log_blocks);
    Ok(superblock)
}

/// Groups that remain when groups are made larger for a log of `needed` blocks. For a log that kernels
/// demand it is one; for one that was asked for, two, since checkers refuse one without being forced.
fn fewest_groups(superblock: &Superblock, needed: u64) -> u32 {
    let least = minimum_log_blocks(&superblock.geometry());
    let unit =
        u64::from(superblock.log_stripe_unit.max(superblock.stripe_unit << superblock.block_log));
    // Rounding to stripe units adds less than one.
    if needed << superblock.block_log > (least << superblock.block_log) + unit { 2 } else { 1 }
}

/// Size of the log in bytes that a volume of `size` bytes gets which is made with the other options:
/// the log for a volume that will grow to it.
///
/// # Errors
/// Such a volume cannot be.
pub fn usual_log_size(options: &MkfsOptions, size: u64) -> Result<u64, MkfsError> {
    let options = MkfsOptions { size, grown_size: None, log_size: None, ..options.clone() };
    let planned = plan(&options)?;
    Ok(u64::from(planned.log_blocks) << planned.block_log)
}

/// Least size in bytes at which [`plan`] accepts `options`, to the megabyte; the size in the
/// options is not looked at. It leaves room for little more than the root directory.
///
/// # Errors
///
/// The defect of the options at any size.
pub fn minimum_size(options: &MkfsOptions) -> Result<u64, MkfsError> {
    let attempt = |size| attempt(&MkfsOptions { size, ..options.clone() });
    let (mut low, mut high) = (0, MIN_AG_BYTES);
    let largest = 1 << 50;
    while let Err(error) = attempt(high) {
        if high >= largest {
            return Err(error);
        }
        (low, high) = (high, high * 2);
    }
    while high - low > MIB {
        let middle = (low + high) / 2 / MIB * MIB;
        if attempt(middle).is_ok() { high = middle } else { low = middle }
    }
    Ok(high)
}

fn apply_groups(superblock: &mut Superblock, groups: Groups) {
    superblock.blocks = groups.blocks;
    superblock.ag_blocks = groups.ag_blocks;
    superblock.ag_count = groups.ag_count;
}

/// Chooses size and place of the log: the middle group, behind the static blocks.
fn place_log(superblock: &mut Superblock, options: &MkfsOptions) -> Result<(), MkfsError> {
    let geometry = superblock.geometry();
    let block_size = 1_u64 << superblock.block_log;
    // Of groups that are longer than the volume needs, the last may be too short for the log.
    let short_groups = u32::from(options.grown_size.is_some());
    let group = AgNumber((superblock.ag_count - short_groups) / 2);
    let length = geometry.ag_length(group);
    let layout = StaticLayout::new(&geometry);
    let unit = match superblock.log_stripe_unit {
        1 => superblock.stripe_unit.max(1),
        bytes => bytes >> superblock.block_log,
    };
    let unit = u64::from(unit);
    // Aligned is the number of the block in the whole volume, not in the group. Before the root
    // directory there must not be a gap: checkers compute its place without one.
    let alignment = if group.0 == 0 { 1 } else { unit };
    let behind = geometry.fs_block(group, AgBlock(layout.blocks));
    let log_start = FsBlock(behind.0.next_multiple_of(alignment));
    let start = u64::from(geometry.split_block(log_start).1.0);
    let beside = u64::from(layout.free_list_blocks).max(MIN_BESIDE_LOG)
        + 1
        + if group.0 == 0 { CHUNKS_BESIDE_LOG * u64::from(geometry.chunk_blocks()) } else { 0 };
    let room = u64::from(length).saturating_sub(start + beside);
    let limit = MAX_LOG_BLOCKS.min(MAX_LOG_BYTES / block_size);
    let least = minimum_log_blocks(&geometry).next_multiple_of(unit);
    let most = room.min(limit) / unit * unit;
    if least > most {
        let needed = least;
        return Err(MkfsError::LogTooLarge { needed, room: most, group: length, block_size });
    }
    let blocks = match options.log_size {
        Some(bytes) => {
            let blocks = bytes.div_ceil(block_size).next_multiple_of(unit);
            if blocks > most && blocks <= limit {
                let needed = blocks;
                return Err(MkfsError::LogTooLarge {
                    needed,
                    room: most,
                    group: length,
                    block_size,
                });
            }
            if blocks < least || blocks > most {
                return Err(MkfsError::Range {
                    option: "log size",
                    value: bytes,
                    min: least * block_size,
                    max: most * block_size,
                    unit: "bytes",
                    remedy: "it lies in one group and must hold the largest transactions: change \
                             it, or leave it out",
                });
            }
            blocks
        }
        None if superblock.blocks * block_size < SMALL_VOLUME => least,
        None => (superblock.blocks / LOG_SHARE)
            .max(REALISTIC_LOG / block_size)
            .next_multiple_of(unit)
            .clamp(least, most),
    };
    superblock.log_start = log_start;
    superblock.log_blocks = u32::try_from(blocks).expect("at most 2^20 blocks");
    Ok(())
}

/// Numbers the inodes that every volume has (docs/format/new-volumes.md#root-directory): checkers
/// compute the place from the geometry, so it must be free.
fn place_root(superblock: &mut Superblock) -> Result<(), MkfsError> {
    let geometry = superblock.geometry();
    let (log_group, log_block) = geometry.split_block(superblock.log_start);
    let layout = StaticLayout::new(&geometry);
    let log_here = if log_group.0 == 0 { superblock.log_blocks } else { 0 };
    let behind = layout.blocks + layout.free_list_blocks + log_here;
    let block = behind.next_multiple_of(root_alignment(&geometry));
    let end = block + geometry.chunk_blocks();
    let occupant = if end > geometry.ag_length(AgNumber(0)) {
        Some("the group has ended")
    } else if log_group.0 == 0 && block < log_block.0 + superblock.log_blocks && end > log_block.0 {
        Some("the log lies")
    } else {
        None
    };
    if let Some(occupant) = occupant {
        return Err(MkfsError::RootPlace { block: block.into(), occupant });
    }
    let inode = |index| {
        let first = block << geometry.inodes_per_block_log();
        geometry.inode_number(AgNumber(0), AgInode(first + index))
    };
    superblock.root_inode = inode(0);
    superblock.rt_bitmap_inode = inode(1);
    superblock.rt_summary_inode = inode(2);
    Ok(())
}

/// The stripe unit replaces the alignment of inode chunks when it is a multiple of it.
fn root_alignment(geometry: &Geometry) -> u32 {
    let (unit, clusters) = (geometry.stripe_unit, geometry.cluster_alignment());
    if unit != 0 && clusters > 1 && unit.is_multiple_of(clusters) {
        unit
    } else {
        geometry.inode_alignment.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{checksum, superblock};
    use uuid::Uuid;

    const GIB: u64 = 1 << 30;

    fn options(size: u64) -> MkfsOptions {
        MkfsOptions::new(size, Uuid::from_u128(1))
    }

    /// The table of docs/format/new-volumes.md#root-directory.
    #[test]
    fn root_inodes_are_where_checkers_look() {
        let root = |change: &dyn Fn(&mut MkfsOptions)| {
            let mut options = options(2 * GIB);
            change(&mut options);
            plan(&options).unwrap().root_inode.0
        };
        assert_eq!(root(&|_| ()), 128);
        assert_eq!(root(&|options| options.block_size = 1024), 64);
        assert_eq!(root(&|options| options.inode_size = 2048), 64);
        assert_eq!(root(&|options| options.block_size = 16_384), 448);
        assert_eq!(root(&|options| options.block_size = 65_536), 1664);
        assert_eq!(plan(&options(16 * MIB)).unwrap().root_inode.0, 16_128);
    }

    #[test]
    fn every_plan_is_an_acceptable_superblock() {
        for size in [16 * MIB, 20 * MIB + 512, 64 * MIB + 4096, 777 * MIB, GIB, 5 << 40, 1 << 50] {
            for block_size in [1024, 4096, 65_536] {
                let Ok(planned) = plan(&MkfsOptions { block_size, ..options(size) }) else {
                    assert!(block_size == 65_536 && size < 100 * MIB, "{size} {block_size}");
                    continue;
                };
                let mut bytes = vec![0; 512];
                planned.encode(&mut bytes);
                checksum::stamp(&mut bytes, superblock::CRC_OFFSET);
                assert_eq!(Superblock::decode(&bytes), Ok(planned.clone()));
                assert!(planned.free_blocks < planned.blocks);
            }
        }
    }

    #[test]
    fn a_log_that_needs_it_gets_larger_groups() {
        let large_blocks = MkfsOptions { block_size: 65_536, ..options(200 * MIB) };
        let planned = plan(&large_blocks).unwrap();
        assert_eq!((planned.ag_count, planned.log_blocks), (2, 1127));
        let fixed = MkfsOptions { ag_count: Some(4), ..large_blocks };
        let error = plan(&fixed).unwrap_err();
        assert!(
            matches!(error, MkfsError::LogTooLarge { needed: 1127, group: 800, .. }),
            "{error}"
        );
    }

    #[test]
    fn a_log_for_a_size_to_come_makes_groups_larger_but_leaves_two() {
        let log_size = usual_log_size(&options(0), 100 * GIB).unwrap();
        assert_eq!(log_size, u64::from(plan(&options(100 * GIB)).unwrap().log_blocks) << 12);
        let wanted = |size| MkfsOptions { log_size: Some(log_size), ..options(size) };
        let least = minimum_size(&wanted(0)).unwrap();
        for size in (0..40).map(|step| least + step * 16 * MIB) {
            let planned = plan(&wanted(size)).unwrap();
            assert!(planned.ag_count >= 2, "{size}");
            assert_eq!(u64::from(planned.log_blocks) << 12, log_size);
        }
        assert!(plan(&wanted(least - MIB)).is_err());
    }

    #[test]
    fn minimum_sizes_are_minimal() {
        assert_eq!(minimum_size(&options(0)), Ok(16 * MIB));
        let large_blocks = MkfsOptions { block_size: 65_536, ..options(0) };
        let least = minimum_size(&large_blocks).unwrap();
        assert!(plan(&MkfsOptions { size: least, ..large_blocks.clone() }).is_ok());
        assert!(plan(&MkfsOptions { size: least - MIB, ..large_blocks.clone() }).is_err());
        let impossible = MkfsOptions { inode_size: 300, ..options(0) };
        assert!(matches!(minimum_size(&impossible), Err(MkfsError::PowerOfTwo { .. })));
    }

    #[test]
    fn refusals_name_option_value_range_and_remedy() {
        let text = |change: &dyn Fn(&mut MkfsOptions)| {
            let mut options = options(GIB);
            change(&mut options);
            plan(&options).unwrap_err().to_string()
        };
        assert_eq!(
            text(&|options| options.block_size = 512),
            "block size is 512 bytes, it must be a power of two from 1024 to 65536"
        );
        assert_eq!(
            text(&|options| options.label = "thirteen char".into()),
            "length of the label is 13, the range is 0 to 12 bytes; shorten it"
        );
        assert_eq!(
            text(&|options| options.stripe = Some((65_536, 100_000))),
            "stripe width is 100000 bytes, it must be a multiple of the block size of 4096 bytes"
        );
        assert_eq!(
            text(&|options| options.ag_count = Some(65)),
            "number of groups is 65, the range is 1 to 64 groups; leave it out or change the size"
        );
        assert!(text(&|options| options.log_size = Some(MIB)).contains("range is 10485760 to"));
        assert!(text(&|options| options.log_size = Some(3 * GIB)).contains("range is 10485760 to"));
        let many = |options: &mut MkfsOptions| {
            (options.ag_count, options.log_size) = (Some(16), Some(100 * MIB));
        };
        assert!(text(&many).contains("the log needs 25600 blocks"), "{}", text(&many));
        let least = minimum_size(&options(GIB)).unwrap();
        for size in [0, MIB, least - MIB] {
            let error = text(&|options| options.size = size);
            assert!(
                error.starts_with(&format!("size is {size}, the range is {least} to")),
                "{error}"
            );
        }
        let both = |options: &mut MkfsOptions| {
            (options.ag_count, options.ag_size) = (Some(4), Some(GIB / 4));
        };
        assert!(text(&both).contains("give only one"));
    }

    #[test]
    fn the_range_of_groups_is_the_true_one() {
        for (size, block_size) in [(64 * MIB, 4096), (GIB, 65_536), (GIB, 1024), (5 << 40, 4096)] {
            let of = |count| {
                let options = MkfsOptions { block_size, ag_count: Some(count), ..options(size) };
                plan(&options)
            };
            let Err(MkfsError::Range { min, max, .. }) = of(0) else { panic!("{size}") };
            let [min, max] = [min, max].map(|count| u32::try_from(count).unwrap());
            assert!(of(min).is_ok() && of(max).is_ok(), "{size}: {min} to {max}");
            assert!(of(min - 1).is_err() && of(max + 1).is_err(), "{size}: {min} to {max}");
        }
    }
}

//! From options to the superblock of an empty volume (format reference, section 11).

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
    let mut superblock = sizes::superblock(options)?;
    let stripe = Stripe { unit: superblock.stripe_unit, width: superblock.stripe_width };
    let block_log = u32::from(superblock.block_log);
    let automatic = options.ag_count.is_none() && options.ag_size.is_none();
    let mut limit = None;
    loop {
        let groups = groups::choose(options, block_log, stripe, limit)?;
        apply_groups(&mut superblock, groups);
        match place_log(&mut superblock, options.log_size) {
            Err(MkfsError::LogTooLarge { .. }) if automatic && groups.ag_count > 1 => {
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

/// Least size in bytes at which [`plan`] accepts `options`, to the megabyte; the size in the
/// options is not looked at. It leaves room for little more than the root directory.
///
/// # Errors
///
/// What is wrong with the options at any size.
pub fn minimum_size(options: &MkfsOptions) -> Result<u64, MkfsError> {
    let attempt = |size| plan(&MkfsOptions { size, ..options.clone() });
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
fn place_log(superblock: &mut Superblock, wanted: Option<u64>) -> Result<(), MkfsError> {
    let geometry = superblock.geometry();
    let block_size = 1_u64 << superblock.block_log;
    let group = AgNumber(superblock.ag_count / 2);
    let length = geometry.ag_length(group);
    let layout = StaticLayout::new(&geometry);
    let unit = match superblock.log_stripe_unit {
        1 => superblock.stripe_unit.max(1),
        bytes => bytes >> superblock.block_log,
    };
    let unit = u64::from(unit);
    // Aligned is the number of the block in the whole volume, not in the group.
    let log_start = geometry.fs_block(group, AgBlock(layout.blocks)).0.next_multiple_of(unit);
    let log_start = FsBlock(log_start);
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
    let blocks = match wanted {
        Some(bytes) => {
            let blocks = bytes.div_ceil(block_size).next_multiple_of(unit);
            if blocks < least || blocks > most {
                return Err(MkfsError::Range {
                    option: "log size",
                    value: bytes,
                    min: least * block_size,
                    max: most * block_size,
                    unit: "bytes",
                    remedy: "the log lies in one group and must hold the largest transactions",
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

/// Numbers the inodes that every volume has (format reference, section 10.6): checkers compute the
/// place from the geometry, so it must be free.
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

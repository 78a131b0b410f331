//! How large a volume must be for what a survey found.
//!
//! Files, attributes and directories are counted by the decisions that the file system will take.
//! What depends on the order in which they come, above all where inode chunks find aligned room
//! between data, is estimated: [`expected`] is nearly always enough, and a build that finds it is
//! not goes on with [`more`].

use super::{Free, PackError, Survey};
use undercroft_xfs::Geometry;
use undercroft_xfs::mkfs::Reserved;
use undercroft_xfs::mkfs::{self, MkfsError, MkfsOptions};
use undercroft_xfs::units::AgNumber;

/// Sizes are rounded up to this.
const ROUNDING: u64 = 1 << 20;

/// No volume is larger.
pub(super) const LARGEST: u64 = 1 << 60;

/// Blocks of each group that requests leave for splits of its trees.
const SET_ASIDE: u32 = 8;

/// Least free space of a comfortable volume.
const COMFORT: u64 = 16 << 20;

/// The least size that should hold the content.
pub(super) fn expected(survey: &Survey, volume: &MkfsOptions) -> Result<u64, PackError> {
    fitting(survey, volume, Free::Bytes(0), |_| 0)
}

/// The size that holds the content and leaves a tenth of it free, at least 16 MiB.
pub(super) fn comfortable(survey: &Survey, volume: &MkfsOptions) -> Result<u64, PackError> {
    fitting(survey, volume, Free::Bytes(COMFORT.max(survey.bytes / 10)), |_| 0)
}

/// The size that holds the content and leaves space free.
pub(super) fn with_free(
    survey: &Survey,
    volume: &MkfsOptions,
    free: Free,
) -> Result<u64, PackError> {
    let pool = |geometry: &Geometry| pool_blocks(geometry.blocks) << geometry.block_log;
    fitting(survey, volume, free, pool)
}

/// Bytes that files can take in a mounted volume, which has `free` bytes free and reserves `reserved`
/// for its trees: what `df` shows.
pub(super) fn available(geometry: &Geometry, free: u64, reserved: u64) -> u64 {
    let aside = u64::from(geometry.ag_count) * u64::from(SET_ASIDE);
    let kept = (pool_blocks(geometry.blocks) + aside) << geometry.block_log;
    free.saturating_sub(reserved).saturating_sub(kept)
}

/// Blocks that a kernel keeps back from files while a volume is mounted to be written.
fn pool_blocks(blocks: u64) -> u64 {
    (blocks / 20).min(8192)
}

/// The size to try after `size` left only `left` bytes of `free`.
pub(super) fn freer(size: u64, free: Free, left: u64) -> u64 {
    let missing = free.of(size).saturating_sub(left);
    size.saturating_add(grown(free, missing)).max(size + 1).next_multiple_of(ROUNDING)
}

/// Bytes that a volume must be longer to have `missing` more beyond what is to be free of them.
fn grown(free: Free, missing: u64) -> u64 {
    match free {
        Free::Bytes(_) => missing,
        // Of each byte more, this share is to be free again.
        Free::Percent(percent) => {
            missing.div_ceil(100 - u64::from(percent.min(99))).saturating_mul(100)
        }
    }
}

/// The size to try after `size` was too small.
pub(super) fn more(size: u64) -> u64 {
    (size + size / 32).next_multiple_of(ROUNDING)
}

/// The least size that holds the content, and beside it `free` and what `kept` says.
fn fitting(
    survey: &Survey,
    volume: &MkfsOptions,
    free: Free,
    kept: impl Fn(&Geometry) -> u64,
) -> Result<u64, PackError> {
    let least = mkfs::minimum_size(volume)?;
    let mut size = least;
    // Each round adds what the last size lacked; overhead grows far slower than the size.
    loop {
        let geometry = match mkfs::plan(&MkfsOptions { size, ..volume.clone() }) {
            Ok(superblock) => superblock.geometry(),
            // The last group, in which the log lies then, became shorter than at the least size.
            Err(MkfsError::LogTooLarge { needed, room, block_size, .. }) => {
                size = (size + (needed - room) * block_size).next_multiple_of(ROUNDING);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let inodes = inode_limit_blocks(survey, &geometry, volume);
        if inodes > geometry.blocks {
            size = (inodes << geometry.block_log).next_multiple_of(ROUNDING);
            continue;
        }
        let spare = free.of(geometry.blocks << geometry.block_log) + kept(&geometry);
        let needed = content_blocks(survey, &geometry, spare);
        let usable = usable_blocks(&geometry);
        if needed <= usable {
            // A last group that would be too short is left out of the volume.
            let used = geometry.blocks << geometry.block_log;
            let shorter = mkfs::plan(&MkfsOptions { size: used, ..volume.clone() });
            let same = shorter.is_ok_and(|superblock| superblock.geometry() == geometry);
            return Ok(if same { used } else { size });
        }
        // A last group that is too short adds nothing: the next size has a longer one.
        let more = grown(free, (needed - usable) << geometry.block_log);
        let wanted = (geometry.blocks << geometry.block_log).saturating_add(more);
        if wanted > LARGEST {
            return Err(PackError::FreeTooLarge);
        }
        size = wanted.max(size + 1).next_multiple_of(ROUNDING);
    }
}

/// Blocks of a volume in which the inodes keep to the share that was set for them.
fn inode_limit_blocks(survey: &Survey, geometry: &Geometry, volume: &MkfsOptions) -> u64 {
    let Some(percent) = volume.inode_max_percent.filter(|percent| *percent > 0) else { return 0 };
    // One more chunk, because the limit is whole chunks.
    let blocks = (chunks(survey, geometry) + 1) * u64::from(geometry.chunk_blocks());
    (blocks * 100).div_ceil(percent.into())
}

/// Inode chunks: the last of every group is partly empty, and the volume has two files of its own.
fn chunks(survey: &Survey, geometry: &Geometry) -> u64 {
    (survey.inodes + 2).div_ceil(geometry.chunk_inodes().into()) + u64::from(geometry.ag_count)
}

/// Blocks that content can take, all reservations honoured.
fn usable_blocks(geometry: &Geometry) -> u64 {
    let groups = (0..geometry.ag_count).map(AgNumber).map(|ag| {
        let length = geometry.ag_length(ag);
        let reserved = Reserved::new(geometry, ag).total();
        u64::from(length.saturating_sub(reserved).saturating_sub(fixed_blocks(geometry, length)))
    });
    groups.sum::<u64>().saturating_sub(u64::from(geometry.log_blocks))
}

/// Blocks of a group that content never gets: headers, roots, the free list, what requests must
/// leave for splits, and the end that is too short for a chunk or a directory block.
fn fixed_blocks(geometry: &Geometry, length: u32) -> u32 {
    const ROOTS: u32 = 3;
    let block = geometry.block_size() as u32;
    // Free-space trees have few records in a volume without history; one of reverse mappings has
    // a record for every few blocks.
    let height = |records: u32, record: u32, pair: u32| {
        let (leaf, node) = ((block - 56) / record, (block - 56) / pair);
        let (mut level, mut height) = (records.div_ceil(leaf), 1);
        while level > 1 {
            level = level.div_ceil(node);
            height += 1;
        }
        height
    };
    let free_space = height(length / 64, 8, 12);
    let rmap = if geometry.features.rmapbt() { height(length / 4, 24, 44) } else { 0 };
    let list = 2 * (2 * free_space + rmap);
    let tail = geometry.chunk_blocks().max(geometry.dir_block_blocks());
    geometry.ag_header_blocks() + ROOTS + SET_ASIDE + list + 2 * free_space + tail
}

/// Blocks that the content takes, with the space to be left free.
fn content_blocks(survey: &Survey, geometry: &Geometry, spare: u64) -> u64 {
    let block = geometry.block_size() as u64;
    let per_chunk = u64::from(geometry.chunk_blocks());
    let chunks = chunks(survey, geometry);
    let directories = survey.directories.values();
    let directories: u64 =
        directories.map(|names| names.names.blocks(geometry, survey.room(names))).sum();
    let tree = 2 * (chunks * 16).div_ceil(block - 56);
    // Little of the space between chunks stays unused for their alignment: small files go there.
    let gaps = chunks * (per_chunk - 1) / 8;
    // Where there are too few of them, that space is free afterwards, and of no use to the chunks.
    let lost = survey.gaps.lost().saturating_sub(survey.small);
    let unused = lost.max(gaps + geometry.blocks_for(spare));
    survey.blocks + chunks * per_chunk + directories + tree + unused
}

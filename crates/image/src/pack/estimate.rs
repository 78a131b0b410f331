//! How large a volume must be for what a survey found.
//!
//! Every structure is counted at its worst usual fill (hash blocks after random splits are half
//! full, tree leaves after inserts in order half), so the content fits for sure; what is counted
//! too much is a few per cent of the metadata.

use super::survey::Names;
use super::{PackError, Survey};
use undercroft_xfs::Geometry;
use undercroft_xfs::ag::Reserved;
use undercroft_xfs::mkfs::{self, MkfsError, MkfsOptions};
use undercroft_xfs::units::AgNumber;

/// Sizes are rounded up to this.
const ROUNDING: u64 = 1 << 20;

/// Least free space of a comfortable volume.
const COMFORT: u64 = 16 << 20;

/// The least size that holds the content.
pub(super) fn minimum(survey: &Survey, volume: &MkfsOptions) -> Result<u64, PackError> {
    fitting(survey, volume, 0)
}

/// The size that holds the content and leaves a tenth of it free, at least 16 MiB.
pub(super) fn comfortable(survey: &Survey, volume: &MkfsOptions) -> Result<u64, PackError> {
    fitting(survey, volume, COMFORT.max(survey.bytes / 10))
}

fn fitting(survey: &Survey, volume: &MkfsOptions, spare: u64) -> Result<u64, PackError> {
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
        let needed = content_blocks(survey, &geometry) + geometry.blocks_for(spare);
        let usable = usable_blocks(&geometry);
        if needed <= usable {
            return Ok(size);
        }
        let lacking = (needed - usable) << geometry.block_log;
        size = (size + lacking).next_multiple_of(ROUNDING);
    }
}

/// Blocks that content can take, all reservations honoured.
fn usable_blocks(geometry: &Geometry) -> u64 {
    // Headers, roots and free list; blocks that requests leave alone; and the space at the ends of
    // groups that chunks and their alignment leave over.
    let fixed = 16 + 16 + 8 + 4 * u64::from(geometry.chunk_blocks());
    let groups = (0..geometry.ag_count).map(AgNumber).map(|ag| {
        let reserved = Reserved::new(geometry, ag).total();
        u64::from(geometry.ag_length(ag)).saturating_sub(fixed + u64::from(reserved))
    });
    groups.sum::<u64>().saturating_sub(u64::from(geometry.log_blocks))
}

/// Blocks that the content takes.
fn content_blocks(survey: &Survey, geometry: &Geometry) -> u64 {
    let block = geometry.block_size() as u64;
    // Every range may begin and end inside a block that it does not fill.
    let data = survey.bytes.div_ceil(block) + survey.ranges;
    let chunks = survey.inodes.div_ceil(64) + u64::from(geometry.ag_count);
    let inodes = chunks * u64::from(geometry.chunk_blocks());
    let directories: u64 =
        survey.directories.values().map(|names| directory_blocks(*names, geometry)).sum();
    let attributes = survey.attribute_inodes + 2 * survey.attribute_bytes.div_ceil(block);
    let values: u64 =
        survey.long_values.iter().map(|len| u64::from(*len).div_ceil(block - 56) + 1).sum();
    let links: u64 = survey.links.values().map(|names| link_blocks(*names, geometry)).sum();
    let maps = 2 * (survey.mapped_ranges * 16).div_ceil(block);
    let trees = 2 * (chunks * 32).div_ceil(block);
    // Data that lies between chunks leaves places where no further one fits.
    let gaps = chunks.min(survey.ranges) * u64::from(geometry.chunk_blocks() - 1);
    data + inodes
        + gaps
        + directories
        + attributes
        + values
        + links
        + maps
        + trees
        + survey.long_symlinks
}

/// Blocks of one directory.
fn directory_blocks(names: Names, geometry: &Geometry) -> u64 {
    let inline = geometry.literal_size() as u64 / 2;
    if names.bytes + names.count * 8 <= inline {
        return 0;
    }
    let (block, per) = (geometry.dir_block_size() as u64, u64::from(geometry.dir_block_blocks()));
    // An entry: twelve bytes and the name, rounded up to eight; some space at each block's end.
    let entries = names.bytes + names.count * 20;
    let data = (entries * 10).div_ceil((block - 64) * 9);
    let hashes = if entries + names.count * 8 <= block - 128 {
        0
    } else {
        // Half-full hash blocks, their parents, and the free index.
        2 * (names.count * 8).div_ceil(block - 64) + 2 + data / 500
    };
    (data + hashes) * per
}

/// Blocks of the parent pointers of a file with many names.
fn link_blocks(names: Names, geometry: &Geometry) -> u64 {
    if !geometry.features.parent_pointers() {
        return 0;
    }
    // Table entry, header, value and rounding; half-full leaves.
    let bytes = names.bytes + names.count * 28;
    2 * bytes.div_ceil(geometry.block_size() as u64 - 80) + 2
}

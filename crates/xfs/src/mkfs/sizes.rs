//! Sizes, features, label and alignments of a new volume: what follows from the options without
//! knowing the groups (docs/format/geometry.md#sizes).

use super::error::MkfsError;
use super::features;
use super::groups::{MIN_AG_BYTES, Stripe};
use super::options::MkfsOptions;
use crate::format::{Superblock, VersionBits};
use crate::geometry::INODES_PER_CHUNK;
use crate::units::{FsBlock, InodeNumber, Lsn};
use uuid::Uuid;

const MAX_BYTES: u64 = i64::MAX as u64;
const MAX_LOG_STRIPE_UNIT: u64 = 256 << 10;
/// Log stripe unit when that of the data is too large.
const FALLBACK_LOG_STRIPE_UNIT: u64 = 32 << 10;
const RT_EXTENT_BYTES: u32 = 4096;

fn power_of_two(option: &'static str, value: u32, min: u32, max: u32) -> Result<u8, MkfsError> {
    if value.is_power_of_two() && (min..=max).contains(&value) {
        // Exact: at most 31.
        return Ok(value.trailing_zeros() as u8);
    }
    let (value, min, max) = (value.into(), min.into(), max.into());
    Err(MkfsError::PowerOfTwo { option, value, min, max })
}

/// Everything that does not depend on the groups.
pub(super) fn superblock(options: &MkfsOptions) -> Result<Superblock, MkfsError> {
    let logs = logs(options)?;
    let mut features = features::resolve(options.preset, &options.features)?;
    let stripe = data_stripe(options)?;
    features.version.set(VersionBits::DALIGN, stripe.unit != 0);
    features.version.set(VersionBits::SECTOR, logs.sector > 9);
    let mut superblock = Superblock {
        block_log: logs.block,
        sector_log: logs.sector,
        inode_log: logs.inode,
        dir_block_log: logs.dir_block - logs.block,
        log_sector_log: if logs.sector > 9 { logs.sector } else { 0 },
        blocks: options.size >> logs.block,
        rt_blocks: 0,
        rt_extents: 0,
        uuid: options.uuid,
        separate_meta_uuid: Uuid::nil(),
        log_start: FsBlock::NULL,
        log_blocks: 0,
        log_stripe_unit: log_stripe_unit(options, stripe)?,
        root_inode: InodeNumber::NULL,
        rt_bitmap_inode: InodeNumber::NULL,
        rt_summary_inode: InodeNumber::NULL,
        rt_extent_blocks: (RT_EXTENT_BYTES >> logs.block).max(1),
        rt_bitmap_blocks: 0,
        rt_extents_log: 0,
        rt_free_extents: 0,
        ag_blocks: 0,
        ag_count: 0,
        features,
        compat: 0,
        label: label(&options.label)?,
        in_progress: true,
        inode_max_percent: inode_max_percent(options)?,
        inodes: 0,
        free_inodes: 0,
        free_blocks: 0,
        user_quota_inode: InodeNumber(0),
        group_quota_inode: InodeNumber(0),
        project_quota_inode: InodeNumber(0),
        quota_flags: 0,
        flags: 0,
        inode_alignment: 0,
        sparse_alignment: 0,
        stripe_unit: stripe.unit,
        stripe_width: stripe.width,
        lsn: Lsn(0),
        metadata_root: InodeNumber(0),
        rt_group_count: 0,
        rt_group_extents: 0,
        rt_group_block_log: 0,
        rt_start: 0,
        rt_reserved: 0,
    };
    align_inodes(&mut superblock);
    Ok(superblock)
}

/// Logarithms of the sizes.
struct Logs {
    block: u8,
    sector: u8,
    inode: u8,
    dir_block: u8,
}

fn logs(options: &MkfsOptions) -> Result<Logs, MkfsError> {
    let block_size = options.block_size;
    let block = power_of_two("block size", block_size, 1024, 65_536)?;
    let sector = power_of_two("sector size", options.sector_size, 512, block_size.min(4096))?;
    if options.sector_size != 512 && options.sector_size != 4096 {
        return Err(MkfsError::Conflict {
            option: "sector size",
            value: options.sector_size.into(),
            rule: "sectors have 512 or 4096 bytes",
        });
    }
    let inode = power_of_two("inode size", options.inode_size, 512, (block_size / 2).min(2048))?;
    let dir_min = block_size.max(4096);
    let dir_block = options.dir_block_size.unwrap_or(dir_min);
    let dir_block = power_of_two("directory block size", dir_block, dir_min, 65_536)?;
    if options.size < MIN_AG_BYTES || options.size > MAX_BYTES {
        return Err(size_range(options.size, MIN_AG_BYTES));
    }
    Ok(Logs { block, sector, inode, dir_block })
}

/// The error of a size that is not between `min` and the largest.
pub(super) fn size_range(size: u64, min: u64) -> MkfsError {
    let remedy = "use a size within it";
    MkfsError::Range { option: "size", value: size, min, max: MAX_BYTES, unit: "bytes", remedy }
}

fn label(text: &str) -> Result<[u8; 12], MkfsError> {
    let bytes = text.as_bytes();
    let mut label = [0; 12];
    if bytes.contains(&0) {
        let rule = "it must not contain a zero byte";
        return Err(MkfsError::Conflict {
            option: "length of the label",
            value: bytes.len() as u64,
            rule,
        });
    }
    let Some(start) = label.get_mut(..bytes.len()) else {
        return Err(MkfsError::Range {
            option: "length of the label",
            value: bytes.len() as u64,
            min: 0,
            max: 12,
            unit: "bytes",
            remedy: "shorten it",
        });
    };
    start.copy_from_slice(bytes);
    Ok(label)
}

fn inode_max_percent(options: &MkfsOptions) -> Result<u8, MkfsError> {
    const TIB: u64 = 1 << 40;
    let default = match options.size {
        size if size < TIB => 25,
        size if size < 50 * TIB => 5,
        _ => 1,
    };
    let percent = options.inode_max_percent.unwrap_or(default);
    if percent > 100 {
        return Err(MkfsError::Range {
            option: "share of inodes",
            value: percent.into(),
            min: 0,
            max: 100,
            unit: "percent",
            remedy: "0 means no limit",
        });
    }
    Ok(percent)
}

fn multiple(
    option: &'static str,
    value: u64,
    unit: &'static str,
    size: u64,
) -> Result<(), MkfsError> {
    if value.is_multiple_of(size) {
        Ok(())
    } else {
        Err(MkfsError::Multiple { option, value, unit, size })
    }
}

fn data_stripe(options: &MkfsOptions) -> Result<Stripe, MkfsError> {
    let Some((unit, width)) = options.stripe else { return Ok(Stripe::default()) };
    let block_size = u64::from(options.block_size);
    // The kernel keeps both in a signed number of 32 bits.
    let max = i32::MAX as u64;
    for (option, value) in [("stripe unit", unit), ("stripe width", width)] {
        if !(block_size..=max).contains(&value) {
            let (min, unit) = (block_size, "bytes");
            let remedy = "give the chunk of one disk and the chunks of all data disks";
            return Err(MkfsError::Range { option, value, min, max, unit, remedy });
        }
        multiple(option, value, "block size", block_size)?;
    }
    multiple("stripe width", width, "stripe unit", unit)?;
    let blocks = |bytes: u64| u32::try_from(bytes / block_size).expect("below 2^31");
    Ok(Stripe { unit: blocks(unit), width: blocks(width) })
}

fn log_stripe_unit(options: &MkfsOptions, stripe: Stripe) -> Result<u32, MkfsError> {
    let block_size = u64::from(options.block_size);
    let Some(unit) = options.log_stripe_unit else {
        let unit = match u64::from(stripe.unit) * block_size {
            0 if options.sector_size > 512 => block_size,
            0 => 1,
            unit if unit <= MAX_LOG_STRIPE_UNIT => unit,
            _ if block_size > FALLBACK_LOG_STRIPE_UNIT => 1,
            _ => FALLBACK_LOG_STRIPE_UNIT,
        };
        return Ok(u32::try_from(unit).expect("at most 256 KiB"));
    };
    let value = u64::from(unit);
    if !(block_size..=MAX_LOG_STRIPE_UNIT).contains(&value) {
        return Err(MkfsError::Range {
            option: "log stripe unit",
            value,
            min: block_size,
            max: MAX_LOG_STRIPE_UNIT,
            unit: "bytes",
            remedy: "leave it out for none",
        });
    }
    multiple("log stripe unit", value, "block size", block_size)?;
    Ok(unit)
}

/// Alignment of inode chunks: the whole chunk when parts of it may be missing, else a cluster.
fn align_inodes(superblock: &mut Superblock) {
    let cluster = (8192_u32 << (superblock.inode_log - 8)) >> superblock.block_log;
    if superblock.features.sparse_inodes() {
        superblock.inode_alignment =
            (INODES_PER_CHUNK << superblock.inode_log) >> superblock.block_log;
        superblock.sparse_alignment = cluster;
    } else {
        superblock.inode_alignment = cluster;
    }
}

//! What makes a superblock acceptable (docs/format/superblock.md#rules,
//! docs/format/checks.md#superblock).

use super::{
    CRC_OFFSET, Features, Features2, Incompat, MAGIC, RoCompat, SIZE, Superblock, VERSION_MASK,
    VersionBits,
};
use crate::bytes::{be16, be32};
use crate::checksum::{self, ChecksumError};
use thiserror::Error;

/// Why a superblock is not acceptable.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SuperblockError {
    /// Another file system, or none.
    #[error("no XFS superblock: magic number is {found:#010x}, expected 0x58465342 (\"XFSB\")")]
    Magic {
        /// Value found.
        found: u32,
    },

    /// The caller read less than the superblock's sector.
    #[error("the superblock needs {needed} bytes, the device gave {have}")]
    Short {
        /// Bytes given.
        have: usize,
        /// Bytes needed.
        needed: usize,
    },

    /// The checksum does not match.
    #[error("damaged superblock: {0}; `xfs_repair` can rebuild it from a secondary copy")]
    Checksum(#[from] ChecksumError),

    /// A version that is neither 4 nor 5.
    #[error("version {found} of XFS is not supported; versions 4 and 5 are")]
    Version {
        /// Low four bits of `versionnum`.
        found: u16,
    },

    /// Version bits that must be set, or must not.
    #[error("damaged superblock: {field} is {found:#x}, {rule}")]
    Bits {
        /// Name in docs/format/superblock.md.
        field: &'static str,
        /// Value on disk.
        found: u32,
        /// The rule that is broken.
        rule: &'static str,
    },

    /// Features that must be known to read the volume.
    #[error(
        "the volume uses incompatible features {unknown:#x} that this version does not know; read \
         it with a newer version"
    )]
    UnknownIncompat {
        /// The unknown bits.
        unknown: u32,
    },

    /// A field is outside its range.
    #[error("damaged superblock: {field} is {found}, the range is {min} to {max}")]
    Range {
        /// Name in docs/format/superblock.md.
        field: &'static str,
        /// Value on disk.
        found: u64,
        /// Lowest legal value.
        min: u64,
        /// Highest legal value.
        max: u64,
    },

    /// Two fields contradict each other.
    #[error("damaged superblock: {field} is {found}, {rule} ({other})")]
    Contradiction {
        /// Name in docs/format/superblock.md.
        field: &'static str,
        /// Value on disk.
        found: u64,
        /// The rule that is broken.
        rule: &'static str,
        /// The number the rule refers to.
        other: u64,
    },

    /// Making the volume was interrupted. An interrupted shrink ends with the next opening.
    #[error("making this volume was never finished; make it again")]
    InProgress,

    /// The device ends before the volume does.
    #[error(
        "the volume is {needed} bytes long, the device {device}: it was truncated, restore its \
         full length"
    )]
    DeviceTooShort {
        /// Bytes of the device.
        device: u64,
        /// Bytes of the volume.
        needed: u64,
    },
}

impl SuperblockError {
    /// The field that is wrong, by its name in docs/format/superblock.md.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        match self {
            Self::Magic { .. } => Some("magicnum"),
            Self::Checksum(_) => Some("crc"),
            Self::Version { .. } => Some("versionnum"),
            Self::UnknownIncompat { .. } => Some("features_incompat"),
            Self::InProgress => Some("inprogress"),
            Self::Bits { field, .. }
            | Self::Range { field, .. }
            | Self::Contradiction { field, .. } => Some(field),
            Self::Short { .. } | Self::DeviceTooShort { .. } => None,
        }
    }
}

type Result<T> = std::result::Result<T, SuperblockError>;

const MIN_AG_BYTES: u64 = 1 << 24;
const MAX_AG_BYTES: u64 = 1 << 40;
const MIN_AG_BLOCKS: u64 = 64;
const MAX_LOG_BLOCKS: u64 = 1 << 20;
const MAX_LOG_BYTES: u64 = (2 << 30) - (10 << 20);
const MAX_LOG_STRIPE_UNIT: u64 = 256 << 10;
const MAX_STRIPE_BYTES: u64 = i32::MAX as u64;
const RT_EXTENT_BYTES: (u64, u64) = (4096, 1 << 30);

fn range(field: &'static str, found: impl Into<u64>, min: u64, max: u64) -> Result<()> {
    let found = found.into();
    if (min..=max).contains(&found) {
        Ok(())
    } else {
        Err(SuperblockError::Range { field, found, min, max })
    }
}

/// `holds` is the rule; the rest tells what broke it.
fn rule(
    holds: bool,
    field: &'static str,
    found: impl Into<u64>,
    rule: &'static str,
    other: impl Into<u64>,
) -> Result<()> {
    if holds {
        Ok(())
    } else {
        let (found, other) = (found.into(), other.into());
        Err(SuperblockError::Contradiction { field, found, rule, other })
    }
}

/// Magic, version, sector size and checksum; returns the sector.
pub(crate) fn envelope(bytes: &[u8]) -> Result<&[u8]> {
    if bytes.len() < 512 {
        return Err(SuperblockError::Short { have: bytes.len(), needed: 512 });
    }
    let magic = be32(bytes, 0);
    if magic != MAGIC {
        return Err(SuperblockError::Magic { found: magic });
    }
    let version = be16(bytes, 100) & VERSION_MASK;
    if version != 4 && version != 5 {
        return Err(SuperblockError::Version { found: version });
    }
    let sector_size = usize::from(be16(bytes, 102));
    let sector_log = bytes[121];
    range("sectlog", sector_log, 9, 15)?;
    rule(
        sector_size == 1 << sector_log,
        "sectsize",
        be16(bytes, 102),
        "but sectlog says otherwise",
        sector_log,
    )?;
    let Some(sector) = bytes.get(..sector_size) else {
        return Err(SuperblockError::Short { have: bytes.len(), needed: sector_size });
    };
    if version == 5 {
        checksum::verify(sector, CRC_OFFSET)?;
    }
    const { assert!(SIZE <= 512) };
    Ok(sector)
}

/// Feature words of both versions.
pub(crate) fn features(bytes: &[u8]) -> Result<Features> {
    let word = be16(bytes, 100);
    let crc = word & VERSION_MASK == 5;
    let version = VersionBits::from_bits_truncate(word);
    // A writer that put the second word in the wrong place made the twin field; they are one.
    let raw = be32(bytes, 200) | be32(bytes, 204);
    let second = if version.contains(VersionBits::MOREBITS) { raw } else { 0 };
    let bits = |holds: bool, field, found: u32, rule| {
        if holds { Ok(()) } else { Err(SuperblockError::Bits { field, found, rule }) }
    };
    let word32 = u32::from(word);
    bits(!version.contains(VersionBits::SHARED), "versionnum", word32, "bit 0x200 must be clear")?;
    let known = Features2::from_bits(second);
    let features2 = known.ok_or(SuperblockError::Bits {
        field: "features2",
        found: second,
        rule: "which has unknown bits",
    })?;
    let mut features = Features { version, features2, crc, ..Features::default() };
    if !crc {
        let needed = VersionBits::DIRV2 | VersionBits::EXTFLG;
        bits(version.contains(needed), "versionnum", word32, "version 4 needs bits 0x3000")?;
        let rule = "version 4 must not have bit 0x100";
        bits(!features2.contains(Features2::CRC), "features2", second, rule)?;
        return Ok(features);
    }
    let needed = VersionBits::NLINK
        | VersionBits::ALIGN
        | VersionBits::LOGV2
        | VersionBits::EXTFLG
        | VersionBits::DIRV2
        | VersionBits::MOREBITS;
    bits(version.contains(needed), "versionnum", word32, "version 5 needs bits 0xb4a0")?;
    let needed = Features2::LAZYSBCOUNT | Features2::ATTR2 | Features2::PROJID32 | Features2::CRC;
    bits(features2.contains(needed), "features2", second, "version 5 needs bits 0x18a")?;
    let ro_compat = be32(bytes, 212);
    features.ro_compat = RoCompat::from_bits_truncate(ro_compat);
    features.unknown_ro_compat = ro_compat & !RoCompat::all().bits();
    let incompat = be32(bytes, 216);
    let unknown = incompat & !Incompat::all().bits();
    if unknown != 0 {
        return Err(SuperblockError::UnknownIncompat { unknown });
    }
    features.incompat = Incompat::from_bits_truncate(incompat);
    features.log_incompat = be32(bytes, 220);
    bits(
        features.finobt() || !features.inobtcnt(),
        "features_ro_compat",
        ro_compat,
        "INOBTCNT (0x8) needs FINOBT (0x1)",
    )?;
    bits(
        !features.metadir() || features.incompat.contains(Incompat::EXCHRANGE),
        "features_incompat",
        incompat,
        "METADIR (0x100) needs EXCHRANGE (0x40)",
    )?;
    bits(
        !features.zoned() || features.metadir(),
        "features_incompat",
        incompat,
        "ZONED (0x200) needs METADIR (0x100)",
    )?;
    Ok(features)
}

/// Powers of two and their logarithms.
pub(crate) fn sizes(bytes: &[u8], superblock: &Superblock) -> Result<()> {
    let crc = superblock.features.crc;
    let (block_log, inode_log) = (superblock.block_log, superblock.inode_log);
    let contradicts = "but its logarithm says otherwise";
    range("blocklog", block_log, if crc { 10 } else { 9 }, 16)?;
    range("sectlog", superblock.sector_log, 9, u64::from(block_log.min(15)))?;
    let size = be32(bytes, 4);
    rule(size == 1 << block_log, "blocksize", size, contradicts, block_log)?;
    // At least two inodes fit a block.
    range("inodelog", inode_log, if crc { 9 } else { 8 }, u64::from((block_log - 1).min(11)))?;
    let size = be16(bytes, 104);
    rule(size == 1 << inode_log, "inodesize", size, contradicts, inode_log)?;
    let per_block_log = block_log - inode_log;
    rule(bytes[123] == per_block_log, "inopblog", bytes[123], "expected", per_block_log)?;
    let size = be16(bytes, 106);
    rule(size == 1 << per_block_log, "inopblock", size, "but inopblog says otherwise", bytes[123])?;
    range("dirblklog", superblock.dir_block_log, 0, u64::from(16 - block_log))?;
    range("imax_pct", superblock.inode_max_percent, 0, 100)?;
    rule(bytes[179] == 0, "shared_vn", bytes[179], "it must be", 0_u8)
}

/// Number and size of the groups.
pub(crate) fn groups(bytes: &[u8], superblock: &Superblock) -> Result<()> {
    let block_log = superblock.block_log;
    let (size, count) = (u64::from(superblock.ag_blocks), u64::from(superblock.ag_count));
    range("agblocks", size, MIN_AG_BYTES >> block_log, MAX_AG_BYTES >> block_log)?;
    range("agcount", count, 1, u32::MAX.into())?;
    // Exact in 64 bits: agblocks is below 2^32. The last bound keeps byte offsets in 63 bits.
    let max = (count * size).min((1 << 63) >> block_log);
    range("dblocks", superblock.blocks, (count - 1) * size + MIN_AG_BLOCKS, max)?;
    let log = superblock.ag_block_log();
    rule(bytes[124] == log, "agblklog", bytes[124], "agblocks needs", log)
}

/// Place and size of the log, and of its sectors.
pub(crate) fn log(bytes: &[u8], superblock: &Superblock) -> Result<()> {
    let version = superblock.features.version;
    let (log, size) = (superblock.log_sector_log, be16(bytes, 194));
    if version.contains(VersionBits::SECTOR) {
        range("logsectlog", log, 9, 15)?;
        rule(size == 1 << log, "logsectsize", size, "but logsectlog says otherwise", log)?;
    } else {
        let sector_size = 1_u64 << superblock.sector_log;
        let needs = "larger ones need bit 0x800 of versionnum; without it the size is";
        rule(sector_size == 512, "sectsize", sector_size, needs, 512_u16)?;
        range("logsectlog", log, 0, 0)?;
        range("logsectsize", size, 0, 0)?;
    }
    let (unit, block_size) = (u64::from(superblock.log_stripe_unit), 1 << superblock.block_log);
    if !version.contains(VersionBits::LOGV2) {
        range("logsunit", unit, 0, 0)?;
    } else if unit > 1 {
        range("logsunit", unit, block_size, MAX_LOG_STRIPE_UNIT)?;
        rule(unit % block_size == 0, "logsunit", unit, "not a multiple of the block", block_size)?;
    }
    let blocks = u64::from(superblock.log_blocks);
    range("logblocks", blocks, 1, MAX_LOG_BLOCKS.min(MAX_LOG_BYTES >> superblock.block_log))?;
    if superblock.log_start.is_null() {
        return Ok(());
    }
    let geometry = superblock.geometry();
    rule(
        geometry.valid_extent(superblock.log_start, blocks),
        "logstart",
        superblock.log_start.0,
        "the log must lie in one group behind its headers; its length is",
        blocks,
    )
}

/// Inode chunks and data stripes.
pub(crate) fn alignment(superblock: &Superblock) -> Result<()> {
    let alignment = u64::from(superblock.inode_alignment);
    range("inoalignmt", alignment, 0, superblock.ag_blocks.into())?;
    let sparse = u64::from(superblock.sparse_alignment);
    if superblock.features.sparse_inodes() {
        let geometry = superblock.geometry();
        let chunk = u64::from(crate::geometry::INODES_PER_CHUNK) >> geometry.inodes_per_block_log();
        rule(alignment == chunk, "inoalignmt", alignment, "sparse chunks need", chunk)?;
        if sparse != 0 {
            let divides = alignment % sparse == 0;
            rule(divides, "spino_align", sparse, "must divide inoalignmt", alignment)?;
        }
    } else {
        range("spino_align", sparse, 0, 0)?;
    }
    let (unit, width) = (u64::from(superblock.stripe_unit), u64::from(superblock.stripe_width));
    let striped = superblock.features.version.contains(VersionBits::DALIGN);
    rule(striped == (unit != 0), "unit", unit, "bit 0x100 of versionnum is", striped)?;
    rule((unit == 0) == (width == 0), "width", width, "both or none with unit", unit)?;
    if unit != 0 {
        range("width", width, unit, MAX_STRIPE_BYTES >> superblock.block_log)?;
        rule(width % unit == 0, "width", width, "must be a multiple of unit", unit)?;
    }
    Ok(())
}

/// The realtime fields that a reader of the data device meets.
pub(crate) fn realtime(superblock: &Superblock) -> Result<()> {
    let extent = u64::from(superblock.rt_extent_blocks);
    if superblock.features.zoned() {
        range("rextsize", extent, 1, 1)?;
        range("frextents", superblock.rt_free_extents, 0, 0)?;
    } else {
        let (min, max) = RT_EXTENT_BYTES;
        let log = superblock.block_log;
        range("rextsize", extent, (min >> log).max(1), max >> log)?;
    }
    if superblock.rt_blocks == 0 {
        range("rextents", superblock.rt_extents, 0, 0)?;
        range("rbmblocks", superblock.rt_bitmap_blocks, 0, 0)?;
        range("rextslog", superblock.rt_extents_log, 0, 0)?;
        range("frextents", superblock.rt_free_extents, 0, 0)?;
    } else {
        let extents = superblock.rt_blocks / extent;
        rule(superblock.rt_extents == extents, "rextents", superblock.rt_extents, "not", extents)?;
    }
    Ok(())
}

/// Counters that are exact only on a cleanly unmounted volume.
pub(crate) fn counters(superblock: &Superblock) -> Result<()> {
    range("fdblocks", superblock.free_blocks, 0, superblock.blocks)?;
    let per_block_log = superblock.block_log - superblock.inode_log;
    let max = superblock.blocks << per_block_log;
    range("icount", superblock.inodes, crate::geometry::INODES_PER_CHUNK.into(), max)?;
    range("ifree", superblock.free_inodes, 0, superblock.inodes)
}

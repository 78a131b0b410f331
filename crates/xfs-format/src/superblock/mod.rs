//! Superblock (docs/format/superblock.md).
//!
//! [`Superblock::decode`] accepts what a kernel would mount or, with unknown read-only features,
//! mount read-only; both versions 4 and 5. Every accepted superblock gives a [`Geometry`] whose
//! methods cannot overflow. [`Superblock::encode`] writes version 5. Fields that follow from others
//! (sizes that are powers of two, inodes per block, bits of a block number) are not kept.

mod check;

pub use check::SuperblockError;

use crate::bytes::{array, be16, be32, be64, put_be16, put_be32, put_be64};
use crate::geometry::Geometry;
use crate::units::{FsBlock, InodeNumber, Lsn};
use crate::{Counters, Features, Features2, Incompat, RoCompat, VersionBits};
use uuid::Uuid;

/// Offset of the checksum.
pub const CRC_OFFSET: usize = 224;
/// Bytes of the structure; the rest of the sector is zero.
pub const SIZE: usize = 304;

/// The magic number of a superblock.
pub const MAGIC: u32 = u32::from_be_bytes(*b"XFSB");
const VERSION_MASK: u16 = 0xf;

/// One copy of the superblock. Sizes are in blocks unless a field says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// log2 of the block size.
    pub block_log: u8,
    /// log2 of the sector size.
    pub sector_log: u8,
    /// log2 of the inode size.
    pub inode_log: u8,
    /// log2 of blocks per directory block.
    pub dir_block_log: u8,
    /// log2 of the sector size of the log, 0 when both sector sizes are 512.
    pub log_sector_log: u8,
    /// Blocks of the data device.
    pub blocks: u64,
    /// Blocks of the realtime device.
    pub rt_blocks: u64,
    /// Extents of the realtime device.
    pub rt_extents: u64,
    /// User-visible identifier.
    pub uuid: Uuid,
    /// Identifier stamped into metadata, when it is another one; else nil.
    pub separate_meta_uuid: Uuid,
    /// First block of the internal log, null when the log is external.
    pub log_start: FsBlock,
    /// Length of the log.
    pub log_blocks: u32,
    /// Log stripe unit in bytes; 1 means none (0 with the first version of the log).
    pub log_stripe_unit: u32,
    /// Root directory; null in most secondary copies.
    pub root_inode: InodeNumber,
    /// Realtime bitmap.
    pub rt_bitmap_inode: InodeNumber,
    /// Realtime summary.
    pub rt_summary_inode: InodeNumber,
    /// Realtime extent size.
    pub rt_extent_blocks: u32,
    /// Length of the realtime bitmap.
    pub rt_bitmap_blocks: u32,
    /// log2 of the number of realtime extents, rounded down.
    pub rt_extents_log: u8,
    /// Free realtime extents.
    pub rt_free_extents: u64,
    /// Blocks of every group but the last.
    pub ag_blocks: u32,
    /// Number of groups.
    pub ag_count: u32,
    /// Features.
    pub features: Features,
    /// Features that any reader or writer may ignore; none are defined.
    pub compat: u32,
    /// Volume label, padded with zeros.
    pub label: [u8; 12],
    /// Whether the volume is being made; secondary copies keep the mark.
    pub in_progress: bool,
    /// Share of the space that inodes may take, in percent; 0 means all.
    pub inode_max_percent: u8,
    /// Inodes that exist.
    pub inodes: u64,
    /// Free inodes among them.
    pub free_inodes: u64,
    /// Free blocks, free lists and non-root blocks of the space trees included.
    pub free_blocks: u64,
    /// User quota file; 0 or null if none.
    pub user_quota_inode: InodeNumber,
    /// Group quota file; 0 or null if none.
    pub group_quota_inode: InodeNumber,
    /// Project quota file; 0 or null if none.
    pub project_quota_inode: InodeNumber,
    /// Quota state.
    pub quota_flags: u16,
    /// Historic; bit 0 means mounts must be read-only.
    pub flags: u8,
    /// Inode chunk alignment.
    pub inode_alignment: u32,
    /// Alignment of sparse inode clusters, 0 without the feature.
    pub sparse_alignment: u32,
    /// Data stripe unit, 0 if none.
    pub stripe_unit: u32,
    /// Data stripe width, 0 if none.
    pub stripe_width: u32,
    /// Last write sequence.
    pub lsn: Lsn,
    /// Root of the metadata directory tree, 0 without one.
    pub metadata_root: InodeNumber,
    /// Realtime groups.
    pub rt_group_count: u32,
    /// Extents of a realtime group.
    pub rt_group_extents: u32,
    /// Bits of a block number inside a realtime group.
    pub rt_group_block_log: u8,
    /// First block of an internal realtime section.
    pub rt_start: u64,
    /// Realtime blocks withheld from users.
    pub rt_reserved: u64,
}

impl Superblock {
    /// Reads and checks one copy. `bytes` starts at the superblock and holds at least its sector;
    /// 32 KiB are always enough.
    ///
    /// # Errors
    ///
    /// The first rule that is broken. Marks that forbid use but not reading are no errors here:
    /// see [`in_progress`](Self::in_progress), [`needs_repair`](Self::needs_repair) and
    /// [`Features::unknown_ro_compat`].
    pub fn decode(bytes: &[u8]) -> Result<Self, SuperblockError> {
        let sector = check::envelope(bytes)?;
        let superblock = Self::fields(sector, check::features(sector)?);
        check::sizes(sector, &superblock)?;
        check::groups(sector, &superblock)?;
        check::log(sector, &superblock)?;
        check::alignment(&superblock)?;
        check::realtime(&superblock)?;
        Ok(superblock)
    }

    fn fields(bytes: &[u8], features: Features) -> Self {
        let inode = |offset| InodeNumber(be64(bytes, offset));
        let v5 = |value: u64| if features.crc { value } else { 0 };
        let v5_32 = |offset| if features.crc { be32(bytes, offset) } else { 0 };
        let metadir = features.metadir();
        let separate = features.incompat.contains(Incompat::META_UUID);
        Self {
            block_log: bytes[120],
            sector_log: bytes[121],
            inode_log: bytes[122],
            dir_block_log: bytes[192],
            log_sector_log: bytes[193],
            blocks: be64(bytes, 8),
            rt_blocks: be64(bytes, 16),
            rt_extents: be64(bytes, 24),
            uuid: Uuid::from_bytes(array(bytes, 32)),
            separate_meta_uuid: if separate {
                Uuid::from_bytes(array(bytes, 248))
            } else {
                Uuid::nil()
            },
            log_start: match be64(bytes, 48) {
                0 => FsBlock::NULL,
                block => FsBlock(block),
            },
            log_blocks: be32(bytes, 96),
            log_stripe_unit: be32(bytes, 196),
            root_inode: inode(56),
            rt_bitmap_inode: inode(64),
            rt_summary_inode: inode(72),
            rt_extent_blocks: be32(bytes, 80),
            rt_bitmap_blocks: be32(bytes, 92),
            rt_extents_log: bytes[125],
            rt_free_extents: be64(bytes, 152),
            ag_blocks: be32(bytes, 84),
            ag_count: be32(bytes, 88),
            features,
            compat: v5_32(208),
            label: array(bytes, 108),
            in_progress: bytes[126] != 0,
            inode_max_percent: bytes[127],
            inodes: be64(bytes, 128),
            free_inodes: be64(bytes, 136),
            free_blocks: be64(bytes, 144),
            user_quota_inode: inode(160),
            group_quota_inode: inode(168),
            project_quota_inode: InodeNumber(v5(be64(bytes, 232))),
            quota_flags: be16(bytes, 176),
            flags: bytes[178],
            inode_alignment: be32(bytes, 180),
            sparse_alignment: v5_32(228),
            stripe_unit: be32(bytes, 184),
            stripe_width: be32(bytes, 188),
            lsn: Lsn(v5(be64(bytes, 240))),
            metadata_root: InodeNumber(if metadir { be64(bytes, 264) } else { 0 }),
            rt_group_count: if metadir { be32(bytes, 272) } else { 0 },
            rt_group_extents: if metadir { be32(bytes, 276) } else { 0 },
            rt_group_block_log: if metadir { bytes[280] } else { 0 },
            rt_start: if features.zoned() { be64(bytes, 288) } else { 0 },
            rt_reserved: if features.zoned() { be64(bytes, 296) } else { 0 },
        }
    }

    /// Writes version 5 into `bytes`, one sector; the checksum stays zero and is stamped by the
    /// writer of the buffer.
    pub fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        put_be32(bytes, 0, MAGIC);
        self.encode_sizes(bytes);
        put_be64(bytes, 8, self.blocks);
        put_be64(bytes, 16, self.rt_blocks);
        put_be64(bytes, 24, self.rt_extents);
        bytes[32..48].copy_from_slice(self.uuid.as_bytes());
        put_be64(bytes, 48, if self.log_start.is_null() { 0 } else { self.log_start.0 });
        put_be64(bytes, 56, self.root_inode.0);
        put_be64(bytes, 64, self.rt_bitmap_inode.0);
        put_be64(bytes, 72, self.rt_summary_inode.0);
        put_be32(bytes, 80, self.rt_extent_blocks);
        put_be32(bytes, 84, self.ag_blocks);
        put_be32(bytes, 88, self.ag_count);
        put_be32(bytes, 92, self.rt_bitmap_blocks);
        put_be32(bytes, 96, self.log_blocks);
        bytes[108..120].copy_from_slice(&self.label);
        bytes[125] = self.rt_extents_log;
        bytes[126] = u8::from(self.in_progress);
        bytes[127] = self.inode_max_percent;
        let Self { inodes, free_inodes, free_blocks, .. } = *self;
        Counters { inodes, free_inodes, free_blocks }.encode(bytes);
        put_be64(bytes, 152, self.rt_free_extents);
        put_be64(bytes, 160, self.user_quota_inode.0);
        put_be64(bytes, 168, self.group_quota_inode.0);
        put_be16(bytes, 176, self.quota_flags);
        bytes[178] = self.flags;
        put_be32(bytes, 180, self.inode_alignment);
        put_be32(bytes, 184, self.stripe_unit);
        put_be32(bytes, 188, self.stripe_width);
        put_be32(bytes, 196, self.log_stripe_unit);
        self.encode_features(bytes);
        put_be32(bytes, 228, self.sparse_alignment);
        put_be64(bytes, 232, self.project_quota_inode.0);
        put_be64(bytes, 240, self.lsn.0);
        bytes[248..264].copy_from_slice(self.separate_meta_uuid.as_bytes());
        put_be64(bytes, 264, self.metadata_root.0);
        put_be32(bytes, 272, self.rt_group_count);
        put_be32(bytes, 276, self.rt_group_extents);
        bytes[280] = self.rt_group_block_log;
        put_be64(bytes, 288, self.rt_start);
        put_be64(bytes, 296, self.rt_reserved);
    }

    /// Powers of two, each as size and logarithm.
    fn encode_sizes(&self, bytes: &mut [u8]) {
        put_be32(bytes, 4, 1 << self.block_log);
        put_be16(bytes, 102, 1 << self.sector_log);
        put_be16(bytes, 104, 1 << self.inode_log);
        put_be16(bytes, 106, 1 << (self.block_log - self.inode_log));
        bytes[120] = self.block_log;
        bytes[121] = self.sector_log;
        bytes[122] = self.inode_log;
        bytes[123] = self.block_log - self.inode_log;
        bytes[124] = self.ag_block_log();
        bytes[192] = self.dir_block_log;
        bytes[193] = self.log_sector_log;
        put_be16(bytes, 194, if self.log_sector_log == 0 { 0 } else { 1 << self.log_sector_log });
    }

    fn encode_features(&self, bytes: &mut [u8]) {
        let features = &self.features;
        put_be16(bytes, 100, 5 | features.version.bits());
        put_be32(bytes, 200, features.features2.bits());
        put_be32(bytes, 204, features.features2.bits());
        put_be32(bytes, 208, self.compat);
        put_be32(bytes, 212, features.ro_compat.bits() | features.unknown_ro_compat);
        put_be32(bytes, 216, features.incompat.bits());
        put_be32(bytes, 220, features.log_incompat);
    }

    /// Bits of a block number inside a group.
    #[must_use]
    pub const fn ag_block_log(&self) -> u8 {
        // Exact: the number of bits of any u32 is at most 32.
        (u32::BITS - (self.ag_blocks - 1).leading_zeros()) as u8
    }

    /// The first byte behind the fields that the features define: from there on all is zero
    /// (docs/format/superblock.md#zero-tail).
    #[must_use]
    pub fn fields_end(&self) -> usize {
        let incompat = self.features.incompat;
        if !self.features.crc {
            // The second word of features and its copy are there if the first says so.
            if self.features.version.contains(VersionBits::MOREBITS) { 208 } else { 200 }
        } else if incompat.contains(Incompat::ZONED) {
            304
        } else if incompat.contains(Incompat::METADIR) {
            288
        } else if incompat.contains(Incompat::META_UUID) {
            264
        } else {
            248
        }
    }

    /// Whether an offline tool left the volume to `xfs_repair`: it must not be written.
    #[must_use]
    pub fn needs_repair(&self) -> bool {
        self.features.incompat.contains(Incompat::NEEDSREPAIR)
    }

    /// The label without its padding.
    #[must_use]
    pub fn label_bytes(&self) -> &[u8] {
        let end = self.label.iter().position(|byte| *byte == 0).unwrap_or(self.label.len());
        &self.label[..end]
    }

    /// Checks what only the primary copy of a finished volume must obey.
    ///
    /// # Errors
    ///
    /// [`SuperblockError::InProgress`] when making the volume was interrupted, and
    /// [`SuperblockError::DeviceTooShort`] when the device ends before the volume.
    pub fn check_primary(&self, device_bytes: u64) -> Result<(), SuperblockError> {
        if self.in_progress {
            return Err(SuperblockError::InProgress);
        }
        // Cannot overflow: `check::groups` bounds the volume to 2^63 bytes.
        let needed = self.blocks << self.block_log;
        if device_bytes < needed {
            return Err(SuperblockError::DeviceTooShort { device: device_bytes, needed });
        }
        Ok(())
    }

    /// Checks the three counters that a volume that was not unmounted leaves stale.
    ///
    /// # Errors
    ///
    /// [`SuperblockError::Range`] for the first that cannot be true: an opener recomputes them from
    /// the groups, a writer must not write them.
    pub fn check_counters(&self) -> Result<(), SuperblockError> {
        check::counters(self)
    }

    /// The sizes and places that do not change while the volume is open.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        let separate = self.features.incompat.contains(Incompat::META_UUID);
        let aligned = self.features.version.contains(VersionBits::ALIGN);
        Geometry {
            block_log: self.block_log,
            sector_log: self.sector_log,
            inode_log: self.inode_log,
            dir_block_log: self.dir_block_log,
            blocks: self.blocks,
            ag_blocks: self.ag_blocks,
            ag_count: self.ag_count,
            ag_block_log: self.ag_block_log(),
            features: self.features,
            meta_uuid: if separate { self.separate_meta_uuid } else { self.uuid },
            uuid: self.uuid,
            log_start: self.log_start,
            log_blocks: self.log_blocks,
            log_stripe_unit: self.log_stripe_unit.max(1),
            inode_alignment: if aligned { self.inode_alignment } else { 0 },
            sparse_alignment: self.sparse_alignment,
            stripe_unit: self.stripe_unit,
            stripe_width: self.stripe_width,
            inode_max_percent: self.inode_max_percent,
            root_inode: self.root_inode,
        }
    }
}

//! Sizes of one volume, and the conversions between its numbers.
//!
//! A `Geometry` is small, immutable and passed around; there are no globals, so that two volumes
//! can be open at once (docs/decisions/cache.md#units-and-geometry). Formulas: docs/format/numbers.md
//! and docs/format/inode-chunks.md.

use crate::Features;
use crate::units::{AgBlock, AgInode, AgNumber, FileBlock, FsBlock, InodeNumber};
use undercroft_block::Sector;
use uuid::Uuid;

/// Bytes of address space of each of the three parts of a directory file: 32 GiB.
const DIRECTORY_SPACE: u64 = 1 << 35;

/// Inodes described by one record of the inode tree.
pub const INODES_PER_CHUNK: u32 = 64;

/// Sizes and places that never change while a volume is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// log2 of the block size, 9 to 16 (v5: from 10).
    pub block_log: u8,
    /// log2 of the sector size of the group headers, 9 to 15.
    pub sector_log: u8,
    /// log2 of the inode size, 8 to 11 (v5: from 9).
    pub inode_log: u8,
    /// log2 of file system blocks per directory block.
    pub dir_block_log: u8,
    /// Blocks of the data device.
    pub blocks: u64,
    /// Blocks of every group but the last.
    pub ag_blocks: u32,
    /// Number of groups.
    pub ag_count: u32,
    /// Bits of a block number inside a group.
    pub ag_block_log: u8,
    /// Features.
    pub features: Features,
    /// Identifier stamped into metadata blocks.
    pub meta_uuid: Uuid,
    /// User-visible identifier (in the log).
    pub uuid: Uuid,
    /// First block of the internal log, null when the log is external.
    pub log_start: FsBlock,
    /// Length of the log in blocks.
    pub log_blocks: u32,
    /// Log stripe unit in bytes; 1 means none.
    pub log_stripe_unit: u32,
    /// Inode chunk alignment in blocks.
    pub inode_alignment: u32,
    /// Alignment of sparse inode clusters in blocks, 0 without the feature.
    pub sparse_alignment: u32,
    /// Data stripe unit in blocks, 0 if none.
    pub stripe_unit: u32,
    /// Data stripe width in blocks, 0 if none.
    pub stripe_width: u32,
    /// Share of the space that inodes may take, in percent; 0 means all.
    pub inode_max_percent: u8,
    /// Root directory.
    pub root_inode: InodeNumber,
}

impl Geometry {
    /// Block size in bytes.
    #[must_use]
    pub const fn block_size(&self) -> usize {
        1 << self.block_log
    }

    /// Sector size in bytes.
    #[must_use]
    pub const fn sector_size(&self) -> usize {
        1 << self.sector_log
    }

    /// Inode size in bytes.
    #[must_use]
    pub const fn inode_size(&self) -> usize {
        1 << self.inode_log
    }

    /// Directory block size in bytes.
    #[must_use]
    pub const fn dir_block_size(&self) -> usize {
        1 << (self.block_log + self.dir_block_log)
    }

    /// File system blocks per directory block.
    #[must_use]
    pub const fn dir_block_blocks(&self) -> u32 {
        1 << self.dir_block_log
    }

    /// log2 of inodes per block.
    #[must_use]
    pub const fn inodes_per_block_log(&self) -> u8 {
        self.block_log - self.inode_log
    }

    /// Inodes per block.
    #[must_use]
    pub const fn inodes_per_block(&self) -> u32 {
        1 << self.inodes_per_block_log()
    }

    /// Units of 512 bytes per block.
    #[must_use]
    pub const fn sectors_per_block(&self) -> u32 {
        1 << (self.block_log - 9)
    }

    /// Number of blocks that hold `bytes` bytes.
    #[must_use]
    pub const fn blocks_for(&self, bytes: u64) -> u64 {
        bytes.div_ceil(1 << self.block_log)
    }

    /// Length of a group in blocks; the last may be shorter. Groups that do not exist have none.
    #[must_use]
    pub fn ag_length(&self, ag: AgNumber) -> u32 {
        let start = u64::from(ag.0) * u64::from(self.ag_blocks);
        let rest = self.blocks.saturating_sub(start);
        u32::try_from(rest).map_or(self.ag_blocks, |rest| rest.min(self.ag_blocks))
    }

    /// Block that holds the last of the four header sectors of every group.
    #[must_use]
    pub const fn ag_header_last(&self) -> AgBlock {
        AgBlock((3 << self.sector_log) >> self.block_log)
    }

    /// Number of blocks taken by the four header sectors.
    #[must_use]
    pub const fn ag_header_blocks(&self) -> u32 {
        self.ag_header_last().0 + 1
    }

    /// Packs a group and a block in it.
    #[must_use]
    pub const fn fs_block(&self, ag: AgNumber, block: AgBlock) -> FsBlock {
        FsBlock(((ag.0 as u64) << self.ag_block_log) | block.0 as u64)
    }

    /// Splits a file system block; the parts may be out of range.
    #[must_use]
    pub const fn split_block(&self, block: FsBlock) -> (AgNumber, AgBlock) {
        let ag = block.0 >> self.ag_block_log;
        // Groups beyond 32 bits do not exist; saturate so that range checks refuse them.
        let ag = if ag > u32::MAX as u64 { u32::MAX } else { ag as u32 };
        (AgNumber(ag), AgBlock((block.0 & ((1 << self.ag_block_log) - 1)) as u32))
    }

    /// Whether `len` blocks from `block` lie in one group, beyond its headers.
    #[must_use]
    pub fn valid_extent(&self, block: FsBlock, len: u64) -> bool {
        let (ag, start) = self.split_block(block);
        ag.0 < self.ag_count
            && start > self.ag_header_last()
            && len > 0
            && u64::from(start.0)
                .checked_add(len)
                .is_some_and(|end| end <= u64::from(self.ag_length(ag)))
    }

    /// First sector of a block of a group.
    #[must_use]
    pub const fn ag_sector(&self, ag: AgNumber, block: AgBlock) -> Sector {
        let linear = ag.0 as u64 * self.ag_blocks as u64 + block.0 as u64;
        Sector(linear << (self.block_log - 9))
    }

    /// First sector of a file system block.
    #[must_use]
    pub const fn sector(&self, block: FsBlock) -> Sector {
        let (ag, block) = self.split_block(block);
        self.ag_sector(ag, block)
    }

    /// Sector of header `index` (0 superblock, 1 AGF, 2 AGI, 3 AGFL) of a group.
    #[must_use]
    pub const fn header_sector(&self, ag: AgNumber, index: u32) -> Sector {
        Sector(self.ag_sector(ag, AgBlock(0)).0 + ((index as u64) << (self.sector_log - 9)))
    }

    /// Packs a group and an inode in it.
    #[must_use]
    pub const fn inode_number(&self, ag: AgNumber, inode: AgInode) -> InodeNumber {
        InodeNumber(
            ((ag.0 as u64) << (self.ag_block_log + self.inodes_per_block_log())) | inode.0 as u64,
        )
    }

    /// Splits an inode number; the parts may be out of range.
    #[must_use]
    pub const fn split_inode(&self, inode: InodeNumber) -> (AgNumber, AgInode) {
        let bits = self.ag_block_log + self.inodes_per_block_log();
        let ag = inode.0 >> bits;
        let ag = if ag > u32::MAX as u64 { u32::MAX } else { ag as u32 };
        (AgNumber(ag), AgInode((inode.0 & ((1 << bits) - 1)) as u32))
    }

    /// Block of a group that holds an inode, and the inode's index in it.
    #[must_use]
    pub const fn inode_block(&self, inode: AgInode) -> (AgBlock, u32) {
        let shift = self.inodes_per_block_log();
        (AgBlock(inode.0 >> shift), inode.0 & ((1 << shift) - 1))
    }

    /// Block that contains an inode: the allocation hint of its first extent.
    #[must_use]
    pub const fn inode_fs_block(&self, inode: InodeNumber) -> FsBlock {
        FsBlock(inode.0 >> self.inodes_per_block_log())
    }

    /// First sector of an inode, which with inodes of 256 bytes it may share.
    #[must_use]
    pub const fn inode_sector(&self, inode: InodeNumber) -> Sector {
        let (_, index) = self.inode_block(self.split_inode(inode).1);
        let offset = (index as u64) << self.inode_log >> 9;
        Sector(self.sector(self.inode_fs_block(inode)).0 + offset)
    }

    /// Whether an inode of this number can exist (docs/format/numbers.md#inode-numbers).
    #[must_use]
    pub fn valid_inode(&self, inode: InodeNumber) -> bool {
        let (ag, agino) = self.split_inode(inode);
        if ag.0 >= self.ag_count || inode.0 >= 1 << 56 {
            return false;
        }
        let align = self.cluster_alignment();
        let first = (self.ag_header_last().0 + 1).next_multiple_of(align);
        let last = self.ag_length(ag) / align * align;
        let (block, _) = self.inode_block(agino);
        block.0 >= first && block.0 < last
    }

    /// Blocks of one inode chunk.
    #[must_use]
    pub fn chunk_blocks(&self) -> u32 {
        (INODES_PER_CHUNK >> self.inodes_per_block_log()).max(1)
    }

    /// Inodes that one chunk allocation makes: 64, or a whole block of more.
    #[must_use]
    pub fn chunk_inodes(&self) -> u32 {
        INODES_PER_CHUNK.max(self.inodes_per_block())
    }

    /// Blocks of one inode cluster, the I/O unit of inodes.
    #[must_use]
    pub fn cluster_blocks(&self) -> u32 {
        let basic = 8192_u32;
        // The large cluster needs chunks aligned to it; v4 volumes always use the basic size
        // unless the alignment says otherwise.
        let scaled = basic << (self.inode_log - 8);
        let raw = if self.features.crc
            && u64::from(self.inode_alignment) << self.block_log >= u64::from(scaled)
        {
            scaled
        } else {
            basic
        };
        (raw >> self.block_log).max(1)
    }

    /// Alignment of inode chunks in blocks as far as clusters are concerned, at least 1.
    #[must_use]
    pub fn cluster_alignment(&self) -> u32 {
        if self.inode_alignment >= self.cluster_blocks() { self.inode_alignment.max(1) } else { 1 }
    }

    /// First file block of the hash range of directories.
    #[must_use]
    pub const fn dir_leaf_block(&self) -> FileBlock {
        FileBlock(DIRECTORY_SPACE >> self.block_log)
    }

    /// First file block of the free-index range of directories.
    #[must_use]
    pub const fn dir_free_block(&self) -> FileBlock {
        FileBlock((2 * DIRECTORY_SPACE) >> self.block_log)
    }

    /// Bytes of an inode before its literal area.
    #[must_use]
    pub const fn inode_core_size(&self) -> usize {
        if self.features.crc { 176 } else { 100 }
    }

    /// Bytes of an inode for its two forks.
    #[must_use]
    pub const fn literal_size(&self) -> usize {
        self.inode_size() - self.inode_core_size()
    }
}

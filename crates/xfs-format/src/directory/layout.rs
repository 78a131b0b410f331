//! Sizes that depend on the version and features of a volume, for all directory structures.

use crate::HeaderFields;
use crate::geometry::Geometry;
use crate::hash_tree::block::DaLayout;
use crate::hash_tree::name_hash::{entry_hash, names_equal};
use crate::units::FileBlock;

/// Unit in which data pointers count: all entries are aligned to it.
pub const DATA_ALIGN: usize = 8;

/// Longest name in bytes.
pub const MAX_NAME: usize = 255;

/// Sizes of the directory structures of one volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirLayout {
    /// Version 5 headers.
    pub crc: bool,
    /// Entries carry a file type.
    pub ftype: bool,
    /// Names compare without regard to ASCII case.
    pub fold_case: bool,
    /// log2 of bytes per directory block, 9 to 16.
    pub block_log: u8,
    /// log2 of bytes per file system block.
    pub fs_block_log: u8,
}

impl DirLayout {
    /// Layout of the directories of a volume.
    #[must_use]
    pub fn new(geometry: &Geometry) -> Self {
        Self {
            crc: geometry.features.crc,
            ftype: geometry.features.ftype(),
            fold_case: geometry.features.ascii_ci(),
            block_log: geometry.block_log + geometry.dir_block_log,
            fs_block_log: geometry.block_log,
        }
    }

    /// Bytes per directory block.
    #[must_use]
    pub const fn block_size(self) -> usize {
        1 << self.block_log
    }

    /// Layout of hash blocks.
    #[must_use]
    pub const fn da(self) -> DaLayout {
        DaLayout { crc: self.crc, block_size: self.block_size() }
    }

    /// Offset of the three longest free regions in a data block.
    #[must_use]
    pub const fn best_offset(self) -> usize {
        if self.crc { HeaderFields::SPACE_SIZE } else { 4 }
    }

    /// Offset of the first entry of a data block.
    #[must_use]
    pub const fn data_start(self) -> usize {
        if self.crc { 64 } else { 16 }
    }

    /// Free bytes of a data block without entries.
    #[must_use]
    pub const fn data_capacity(self) -> usize {
        self.block_size() - self.data_start()
    }

    /// Bytes of a data entry whose name has `name_len` bytes.
    #[must_use]
    pub const fn entry_size(self, name_len: usize) -> usize {
        (8 + 1 + name_len + self.ftype as usize + 2).next_multiple_of(DATA_ALIGN)
    }

    /// Offset in block 0 of the first entry behind "." and "..".
    #[must_use]
    pub const fn first_name_offset(self) -> usize {
        self.data_start() + self.entry_size(1) + self.entry_size(2)
    }

    /// Hash of a name.
    #[must_use]
    #[inline]
    pub fn hash(self, name: &[u8]) -> u32 {
        entry_hash(name, self.fold_case)
    }

    /// Whether two names are the same name.
    #[must_use]
    #[inline]
    pub fn same_name(self, a: &[u8], b: &[u8]) -> bool {
        names_equal(a, b, self.fold_case)
    }

    /// Pointer to the entry at `offset` of data block `data_block`; both are in range, so that it
    /// fits (the data space has 2^35 bytes).
    #[must_use]
    pub const fn pointer(self, data_block: u32, offset: usize) -> u32 {
        data_block.wrapping_shl(self.block_log as u32 - 3) | (offset / DATA_ALIGN) as u32
    }

    /// Data block and offset in it of a pointer.
    #[must_use]
    pub const fn split_pointer(self, pointer: u32) -> (u32, usize) {
        let shift = self.block_log - 3;
        (pointer >> shift, (pointer as usize & ((1 << shift) - 1)) * DATA_ALIGN)
    }

    /// Place in the file of data block `data_block`.
    #[must_use]
    pub const fn data_file_block(self, data_block: u32) -> FileBlock {
        FileBlock((data_block as u64) << (self.block_log - self.fs_block_log))
    }

    /// Data block that file block `block` of the data space belongs to.
    #[must_use]
    pub const fn data_block(self, block: FileBlock) -> u32 {
        (block.0 >> (self.block_log - self.fs_block_log)) as u32
    }
}

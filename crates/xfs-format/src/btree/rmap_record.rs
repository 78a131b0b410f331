//! A record of the reverse mapping tree: the owner of a run of blocks.
//!
//! Keys are start, owner and offset, where the offset keeps the flags for the attribute fork and
//! for mapping-tree blocks but not the one for unwritten extents
//! (docs/format/reverse-mappings.md#record and docs/format/btrees.md#order).

use crate::bytes::{be32, be64, put_be32, put_be64};
use crate::units::{AgBlock, FileBlock, InodeNumber};
use crate::{FieldDefect, Rule};
use bitflags::bitflags;
use std::fmt;

/// Low bits of the stored offset that are a file block.
const OFFSET_MASK: u64 = (1 << 54) - 1;

/// Owner of blocks: an inode, or one of the structures of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RmapOwner(pub u64);

impl RmapOwner {
    /// The headers of the group.
    pub const FILE_SYSTEM: Self = Self(-3_i64 as u64);
    /// The internal log.
    pub const LOG: Self = Self(-4_i64 as u64);
    /// Free space and reverse mapping trees, and the free list.
    pub const GROUP: Self = Self(-5_i64 as u64);
    /// Inode trees.
    pub const INODE_TREES: Self = Self(-6_i64 as u64);
    /// Inode chunks.
    pub const INODES: Self = Self(-7_i64 as u64);
    /// The reference count tree.
    pub const REFCOUNT_TREE: Self = Self(-8_i64 as u64);
    /// Blocks set aside for copy-on-write.
    pub const COW: Self = Self(-9_i64 as u64);

    /// The owner of what the forks of `inode` hold.
    #[must_use]
    pub const fn inode(inode: InodeNumber) -> Self {
        Self(inode.0)
    }

    /// The inode, if the owner is one.
    #[must_use]
    pub const fn as_inode(self) -> Option<InodeNumber> {
        if self.0 >> 63 == 0 { Some(InodeNumber(self.0)) } else { None }
    }

    /// Whether the owner is one of the special owners that may be on disk.
    #[must_use]
    pub const fn is_special(self) -> bool {
        self.0 >= Self::COW.0 && self.0 <= Self::FILE_SYSTEM.0
    }
}

impl fmt::Display for RmapOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::FILE_SYSTEM => "the headers of the group",
            Self::LOG => "the journal",
            Self::GROUP => "the trees of the group's space",
            Self::INODE_TREES => "the inode trees",
            Self::INODES => "an inode chunk",
            Self::REFCOUNT_TREE => "the reference count tree",
            Self::COW => "copy-on-write",
            Self(other) => return write!(f, "inode {other}"),
        };
        f.pad(name)
    }
}

bitflags! {
    /// Flags of a reverse mapping, at their place in the stored offset.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub struct RmapFlags: u64 {
        /// The blocks belong to the attribute fork.
        const ATTR_FORK = 1 << 63;
        /// The blocks are blocks of the fork's mapping tree.
        const BMBT_BLOCK = 1 << 62;
        /// Allocated but unwritten.
        const UNWRITTEN = 1 << 61;
    }
}

/// Sort key of a reverse mapping: start, then owner, then offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RmapKey {
    /// Block of the group.
    pub start: AgBlock,
    /// Owner, compared as an unsigned number.
    pub owner: RmapOwner,
    /// Stored offset with the fork and tree flags, without the unwritten flag.
    pub offset: u64,
}

/// A run of blocks and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RmapRecord {
    /// First block.
    pub start: AgBlock,
    /// Length in blocks, at least 1.
    pub len: u32,
    /// Their owner.
    pub owner: RmapOwner,
    /// Block of the file the first block is mapped at; 0 for special owners and tree blocks.
    pub offset: FileBlock,
    /// Which fork, and how.
    pub flags: RmapFlags,
}

impl RmapKey {
    /// Bytes on disk.
    pub const LEN: usize = 20;

    /// Before every record that starts at `start` or later.
    #[must_use]
    pub const fn first_at(start: AgBlock) -> Self {
        Self { start, owner: RmapOwner(0), offset: 0 }
    }

    /// After every record that starts at `start` or earlier.
    #[must_use]
    pub const fn last_at(start: AgBlock) -> Self {
        Self { start, owner: RmapOwner(u64::MAX), offset: u64::MAX }
    }

    /// Decodes the key; a stray unwritten flag is ignored.
    #[must_use]
    #[inline]
    pub fn decode(bytes: &[u8]) -> Self {
        Self {
            start: AgBlock(be32(bytes, 0)),
            owner: RmapOwner(be64(bytes, 4)),
            offset: be64(bytes, 12) & !RmapFlags::UNWRITTEN.bits(),
        }
    }

    /// Stores the key in the first bytes of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        put_be32(out, 0, self.start.0);
        put_be64(out, 4, self.owner.0);
        put_be64(out, 12, self.offset & !RmapFlags::UNWRITTEN.bits());
    }
}

impl RmapRecord {
    /// Bytes on disk.
    pub const LEN: usize = 24;

    /// Decodes the record; any bytes give a record, [`validate`](Self::validate) judges it.
    #[must_use]
    #[inline]
    pub fn decode(bytes: &[u8]) -> Self {
        let word = be64(bytes, 16);
        Self {
            start: AgBlock(be32(bytes, 0)),
            len: be32(bytes, 4),
            owner: RmapOwner(be64(bytes, 8)),
            offset: FileBlock(word & OFFSET_MASK),
            flags: RmapFlags::from_bits_retain(word & !OFFSET_MASK),
        }
    }

    /// Stores the record in the first bytes of `out`.
    pub fn encode(&self, out: &mut [u8]) {
        put_be32(out, 0, self.start.0);
        put_be32(out, 4, self.len);
        put_be64(out, 8, self.owner.0);
        put_be64(out, 16, (self.offset.0 & OFFSET_MASK) | self.flags.bits());
    }

    /// Where the record sorts.
    #[must_use]
    #[inline]
    pub fn key(&self) -> RmapKey {
        let flags = self.flags.difference(RmapFlags::UNWRITTEN).bits();
        RmapKey { start: self.start, owner: self.owner, offset: self.offset.0 | flags }
    }

    /// Whether the offset counts on along the run: mappings of file blocks, not tree blocks.
    #[must_use]
    #[inline]
    pub fn has_offset(&self) -> bool {
        self.owner.as_inode().is_some() && !self.flags.contains(RmapFlags::BMBT_BLOCK)
    }

    /// Key of the last block of the run. Saturates on records that are out of range.
    #[must_use]
    #[inline]
    pub fn high_key(&self) -> RmapKey {
        let (mut key, extra) = (self.key(), self.len.saturating_sub(1));
        key.start = AgBlock(key.start.0.saturating_add(extra));
        if self.has_offset() {
            let offset = self.offset.0.saturating_add(u64::from(extra)).min(OFFSET_MASK);
            key.offset = (key.offset & !OFFSET_MASK) | offset;
        }
        key
    }

    /// Checks what can be checked without knowing the group and its inodes.
    ///
    /// # Errors
    /// The field that is wrong.
    pub fn validate(&self) -> Result<(), FieldDefect> {
        FieldDefect::unless(self.len > 0, "blockcount", self.len, Rule::AtLeast(1))?;
        let fits = self.start.checked_add(self.len).is_some();
        FieldDefect::unless(fits, "startblock", self.start.0, Rule::Text("inside the group"))?;
        let inode = self.owner.as_inode().is_some();
        let known = inode || self.owner.is_special();
        FieldDefect::unless(known, "owner", self.owner.0, Rule::Text("an inode or a known owner"))?;
        let (attr, tree) = (RmapFlags::ATTR_FORK, RmapFlags::BMBT_BLOCK);
        let allowed = match (inode, self.flags.intersects(attr | tree)) {
            (true, false) => RmapFlags::UNWRITTEN,
            (true, true) => attr | tree,
            (false, _) => RmapFlags::empty(),
        };
        let holds = allowed.contains(self.flags);
        FieldDefect::unless(holds, "offset flags", self.flags.bits(), Rule::Text("legal here"))?;
        let last = self.offset.0.saturating_add(u64::from(self.len) - 1);
        if self.has_offset() {
            FieldDefect::unless(last <= OFFSET_MASK, "offset", last, Rule::AtMost(OFFSET_MASK))
        } else {
            FieldDefect::unless(self.offset.0 == 0, "offset", self.offset.0, Rule::Equal(0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(start: u32, len: u32, offset: u64) -> RmapRecord {
        let owner = RmapOwner::inode(InodeNumber(131));
        let (start, offset) = (AgBlock(start), FileBlock(offset));
        RmapRecord { start, len, owner, offset, flags: RmapFlags::empty() }
    }

    #[test]
    fn special_owners_are_the_signed_numbers_of_the_format() {
        assert_eq!(RmapOwner::FILE_SYSTEM.0, 0xffff_ffff_ffff_fffd);
        assert_eq!(RmapOwner::COW.0, 0xffff_ffff_ffff_fff7);
        assert!(RmapOwner::GROUP.is_special() && RmapOwner::GROUP.as_inode().is_none());
        assert!(!RmapOwner(u64::MAX).is_special() && !RmapOwner(u64::MAX - 1).is_special());
    }

    #[test]
    fn records_round_trip_and_keys_drop_the_unwritten_flag() {
        let record = RmapRecord { flags: RmapFlags::UNWRITTEN, ..data(7, 3, 5) };
        let mut bytes = [0; RmapRecord::LEN];
        record.encode(&mut bytes);
        assert_eq!(bytes[..8], [0, 0, 0, 7, 0, 0, 0, 3]);
        assert_eq!(bytes[16..], [0x20, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(RmapRecord::decode(&bytes), record);
        assert_eq!(record.key(), data(7, 3, 5).key());
        let mut key = [0; RmapKey::LEN];
        record.high_key().encode(&mut key);
        assert_eq!(key, [0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 131, 0, 0, 0, 0, 0, 0, 0, 7]);
    }

    #[test]
    fn high_keys_advance_the_offset_of_file_blocks_only() {
        assert_eq!(data(10, 4, 100).high_key().offset, 103);
        let tree = RmapRecord { flags: RmapFlags::BMBT_BLOCK, ..data(10, 4, 0) };
        assert_eq!(tree.high_key().offset, RmapFlags::BMBT_BLOCK.bits());
        assert_eq!(tree.high_key().start, AgBlock(13));
        let log = RmapRecord { owner: RmapOwner::LOG, ..data(10, 4, 0) };
        assert_eq!(log.high_key().offset, 0);
        let attr = RmapRecord { flags: RmapFlags::ATTR_FORK, ..data(10, 4, 1) };
        assert_eq!(attr.high_key().offset, 1 << 63 | 4);
        assert_eq!(data(u32::MAX, u32::MAX, u64::MAX).high_key().start, AgBlock(u32::MAX));
    }

    #[test]
    fn impossible_combinations_are_refused() {
        assert!(data(1, 1, 1).validate().is_ok());
        let field = |record: RmapRecord| record.validate().unwrap_err().field;
        assert_eq!(field(data(1, 0, 1)), "blockcount");
        assert_eq!(field(data(u32::MAX, 1, 1)), "startblock");
        assert_eq!(field(RmapRecord { owner: RmapOwner(u64::MAX), ..data(1, 1, 0) }), "owner");
        assert_eq!(field(RmapRecord { owner: RmapOwner::LOG, ..data(1, 1, 1) }), "offset");
        assert_eq!(field(data(1, 2, OFFSET_MASK)), "offset");
        let both = RmapFlags::ATTR_FORK | RmapFlags::UNWRITTEN;
        assert_eq!(field(RmapRecord { flags: both, ..data(1, 1, 0) }), "offset flags");
        let stray = RmapFlags::from_bits_retain(1 << 57);
        assert_eq!(field(RmapRecord { flags: stray, ..data(1, 1, 0) }), "offset flags");
    }
}

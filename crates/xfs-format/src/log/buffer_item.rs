//! Log item of a metadata buffer: which of its parts were changed
//! (docs/format/journal/items.md#buffer).

use super::item::check_at_least;
use crate::bytes::{CHANGE_UNIT, le16, le32, le64};
use crate::{BufferKind, FieldDefect, Header, INODE_MAGIC, LogItemKind, Rule, TreeKind};
use bitflags::bitflags;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use undercroft_block::Sector;

bitflags! {
    /// Flags of a logged buffer.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct BufferItemFlags: u16 {
        /// Inodes of which only the unlinked-list pointers are replayed.
        const UNLINKED_POINTERS = 0x01;
        /// The buffer was freed: its images so far must not be replayed.
        const CANCEL = 0x02;
        /// Quota records of users.
        const USER_QUOTA = 0x04;
        /// Quota records of projects.
        const PROJECT_QUOTA = 0x08;
        /// Quota records of groups.
        const GROUP_QUOTA = 0x10;
    }
}

/// The kind of content of a logged buffer, as far as the item tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum BufferItemType {
    /// Nothing is said; legal with [`BufferItemFlags::CANCEL`] only.
    #[default]
    Unknown = 0,
    /// Quota records of users.
    UserQuota = 1,
    /// Quota records of projects.
    ProjectQuota = 2,
    /// Quota records of groups.
    GroupQuota = 3,
    /// Block of any tree.
    Tree = 4,
    /// Free-space header of a group.
    Agf = 5,
    /// Free list of a group.
    Agfl = 6,
    /// Inode header of a group.
    Agi = 7,
    /// Cluster of inodes.
    Inodes = 8,
    /// Target of a symbolic link.
    Symlink = 9,
    /// Directory in block form.
    DirBlock = 10,
    /// Directory data block.
    DirData = 11,
    /// Directory free-index block.
    DirFree = 12,
    /// Hash block of a leaf-form directory.
    DirLeaf1 = 13,
    /// Hash block of a node-form directory.
    DirLeafN = 14,
    /// Interior node of a hash tree.
    DaNode = 15,
    /// Attribute leaf.
    AttrLeaf = 16,
    /// Value of an attribute.
    AttrRemote = 17,
    /// Superblock.
    Superblock = 18,
    /// Block of the realtime bitmap.
    RealtimeBitmap = 19,
    /// Block of the realtime summary.
    RealtimeSummary = 20,
}

impl BufferItemType {
    const ALL: [Self; 21] = [
        Self::Unknown,
        Self::UserQuota,
        Self::ProjectQuota,
        Self::GroupQuota,
        Self::Tree,
        Self::Agf,
        Self::Agfl,
        Self::Agi,
        Self::Inodes,
        Self::Symlink,
        Self::DirBlock,
        Self::DirData,
        Self::DirFree,
        Self::DirLeaf1,
        Self::DirLeafN,
        Self::DaNode,
        Self::AttrLeaf,
        Self::AttrRemote,
        Self::Superblock,
        Self::RealtimeBitmap,
        Self::RealtimeSummary,
    ];

    /// The type that buffers of a kind are logged with.
    ///
    /// [`BufferKind::DaAny`], which a read resolves, has none.
    #[must_use]
    pub const fn of(kind: BufferKind) -> Self {
        match kind {
            BufferKind::Superblock => Self::Superblock,
            BufferKind::Agf => Self::Agf,
            BufferKind::Agi => Self::Agi,
            BufferKind::Agfl => Self::Agfl,
            BufferKind::Tree(_) => Self::Tree,
            BufferKind::InodeCluster => Self::Inodes,
            BufferKind::DirBlock => Self::DirBlock,
            BufferKind::DirData => Self::DirData,
            BufferKind::DirLeaf1 => Self::DirLeaf1,
            BufferKind::DirLeafN => Self::DirLeafN,
            BufferKind::DirFree => Self::DirFree,
            BufferKind::DaNode => Self::DaNode,
            BufferKind::AttrLeaf => Self::AttrLeaf,
            BufferKind::AttrRemote => Self::AttrRemote,
            BufferKind::Symlink => Self::Symlink,
            BufferKind::DaAny => Self::Unknown,
        }
    }

    /// The kind of a v5 buffer of this type with this content; `None` if the magic number is not
    /// one of the type's, or if this version knows no buffers of the type.
    #[must_use]
    pub fn kind(self, bytes: &[u8]) -> Option<BufferKind> {
        let kind = match self {
            Self::Tree => {
                BufferKind::Tree(TreeKind::of_magic_v5(u32::from_be_bytes(*bytes.first_chunk()?))?)
            }
            Self::Inodes => {
                let is_inode = bytes.first_chunk() == Some(&INODE_MAGIC.to_be_bytes());
                return is_inode.then_some(BufferKind::InodeCluster);
            }
            Self::Agf => BufferKind::Agf,
            Self::Agfl => BufferKind::Agfl,
            Self::Agi => BufferKind::Agi,
            Self::Symlink => BufferKind::Symlink,
            Self::DirBlock => BufferKind::DirBlock,
            Self::DirData => BufferKind::DirData,
            Self::DirFree => BufferKind::DirFree,
            Self::DirLeaf1 => BufferKind::DirLeaf1,
            Self::DirLeafN => BufferKind::DirLeafN,
            Self::DaNode => BufferKind::DaNode,
            Self::AttrLeaf => BufferKind::AttrLeaf,
            Self::AttrRemote => BufferKind::AttrRemote,
            Self::Superblock => BufferKind::Superblock,
            Self::Unknown
            | Self::UserQuota
            | Self::ProjectQuota
            | Self::GroupQuota
            | Self::RealtimeBitmap
            | Self::RealtimeSummary => return None,
        };
        Header::of(kind)?.has_magic(bytes).then_some(kind)
    }
}

/// First region of a buffer's item. A region of data follows for each [run](Self::runs).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferItem {
    /// Its flags.
    pub flags: BufferItemFlags,
    /// Its kind of content.
    pub buffer_type: BufferItemType,
    /// Where it starts on the data device.
    pub sector: Sector,
    /// Length in sectors.
    pub sectors: u16,
    /// One bit per [`CHANGE_UNIT`] bytes of the buffer, lowest first.
    map: SmallVec<[u32; 4]>,
}

/// Most words of the map: one bit for each unit of 64 KiB, and one word more.
const MAP_MAX: u32 = 17;

impl BufferItem {
    const FIXED_LEN: usize = 20;

    /// An item for a buffer of which nothing is logged yet.
    #[must_use]
    pub fn new(sector: Sector, sectors: u16, buffer_type: BufferItemType) -> Self {
        let units = usize::from(sectors) * 512 / CHANGE_UNIT;
        let map = smallvec![0; units.div_ceil(32)];
        Self { flags: BufferItemFlags::empty(), buffer_type, sector, sectors, map }
    }

    /// An item that says that the buffer was freed.
    #[must_use]
    pub fn cancel(sector: Sector, sectors: u16) -> Self {
        let item = Self::new(sector, sectors, BufferItemType::Unknown);
        Self { flags: BufferItemFlags::CANCEL, ..item }
    }

    /// Adds the units that `range` (in bytes of the buffer) touches.
    pub fn mark(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            for unit in range.start / CHANGE_UNIT..range.end.div_ceil(CHANGE_UNIT) {
                self.map[unit / 32] |= 1 << (unit % 32);
            }
        }
    }

    /// The marked parts as maximal byte ranges, ascending.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let units = self.map.len() * 32;
        let mut next = 0;
        std::iter::from_fn(move || {
            let set = |unit: usize| self.map[unit / 32] & (1 << (unit % 32)) != 0;
            let start = (next..units).find(|unit| set(*unit))?;
            let end = (start..units).find(|unit| !set(*unit)).unwrap_or(units);
            next = end;
            Some(start * CHANGE_UNIT..end * CHANGE_UNIT)
        })
    }

    /// Whether the unit that holds byte `offset` is marked.
    #[must_use]
    pub fn covers(&self, offset: usize) -> bool {
        let unit = offset / CHANGE_UNIT;
        self.map.get(unit / 32).is_some_and(|word| word & (1 << (unit % 32)) != 0)
    }

    /// Whether nothing is marked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.iter().all(|word| *word == 0)
    }

    /// Reads the first region of an item.
    ///
    /// # Errors
    /// The field that cannot be: a length, the type, the address, a map longer than the region.
    pub fn decode(region: &[u8]) -> Result<Self, FieldDefect> {
        check_at_least(region, Self::FIXED_LEN)?;
        let (bits, sectors, sector) = (le16(region, 4), le16(region, 6), le64(region, 8));
        let map_size = le32(region, 16);
        let buffer_type = BufferItemType::ALL.into_iter().find(|kind| *kind as u16 == bits >> 11);
        let known = Rule::Text("a known buffer type in its upper five bits");
        let unknown = FieldDefect { field: "blf_flags", found: bits.into(), rule: known };
        FieldDefect::unless(map_size <= MAP_MAX, "blf_map_size", map_size, Rule::AtMost(17))?;
        let room = ((region.len() - Self::FIXED_LEN) / 4) as u64;
        let fits = u64::from(map_size) <= room;
        FieldDefect::unless(fits, "blf_map_size", map_size, Rule::AtMost(room))?;
        let last = i64::MAX as u64 >> 9;
        FieldDefect::unless(sector <= last, "blf_blkno", sector, Rule::AtMost(last))?;
        let map = (0..map_size as usize).map(|word| le32(region, Self::FIXED_LEN + 4 * word));
        Ok(Self {
            flags: BufferItemFlags::from_bits_truncate(bits),
            buffer_type: buffer_type.ok_or(unknown)?,
            sector: Sector(sector),
            sectors,
            map: map.collect(),
        })
    }

    /// Number of regions of the item, the first included.
    #[must_use]
    pub fn regions(&self) -> usize {
        1 + self.runs().count()
    }

    /// Appends the first region.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let bits = self.flags.bits() | (self.buffer_type as u16) << 11;
        out.extend(LogItemKind::Buffer.encode(self.regions()));
        out.extend(bits.to_le_bytes());
        out.extend(self.sectors.to_le_bytes());
        out.extend(self.sector.0.to_le_bytes());
        out.extend((self.map.len() as u32).to_le_bytes());
        self.map.iter().for_each(|word| out.extend(word.to_le_bytes()));
    }
}

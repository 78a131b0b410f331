//! What intents say about space: extents, reverse mappings, reference counts, mappings of forks
//! (docs/format/journal/intents.md#free-extents).
//!
//! Whether the blocks exist is checked where the work is done.

use crate::bytes::{le32, le64};
use crate::units::{FileBlock, FsBlock, InodeNumber};
use crate::{FieldDefect, RmapFlags, RmapOwner, Rule};

/// An extent to free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentChange {
    /// First block.
    pub start: FsBlock,
    /// Length in blocks.
    pub len: u32,
}

impl ExtentChange {
    /// Bytes in the log.
    pub(crate) const LEN: usize = 16;
    /// Bytes in the log of a 32-bit kernel.
    pub(crate) const LEN_32: usize = 12;

    pub(crate) fn decode(record: &[u8]) -> Self {
        Self { start: FsBlock(le64(record, 0)), len: le32(record, 8) }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.start.0.to_le_bytes());
        out.extend(self.len.to_le_bytes());
        out.extend([0; 4]);
    }
}

/// What happens to a reverse mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ReverseAction {
    /// A mapping of blocks that are not shared appears.
    Map = 1,
    /// A mapping of blocks that others may share appears.
    MapShared = 2,
    /// A mapping of blocks that are not shared goes.
    Unmap = 3,
    /// A mapping of blocks that others may share goes.
    UnmapShared = 4,
    /// A mapping changes between written and unwritten.
    Convert = 5,
    /// So does one of blocks that others may share.
    ConvertShared = 6,
    /// Blocks that no file maps get an owner.
    Allocate = 7,
    /// They lose it.
    Free = 8,
}

/// A change of a reverse mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReverseChange {
    /// What happens.
    pub action: ReverseAction,
    /// The owner of the blocks.
    pub owner: RmapOwner,
    /// First block.
    pub start: FsBlock,
    /// Block of the file at which they are mapped.
    pub offset: FileBlock,
    /// Length in blocks.
    pub len: u32,
    /// Which fork, and how.
    pub flags: RmapFlags,
}

/// Bits of an intent that mean the attribute fork, a block of a mapping tree, unwritten blocks.
const REVERSE_FLAGS: [(u32, RmapFlags); 3] = [
    (1 << 31, RmapFlags::ATTR_FORK),
    (1 << 30, RmapFlags::BMBT_BLOCK),
    (1 << 29, RmapFlags::UNWRITTEN),
];

impl ReverseChange {
    pub(crate) const LEN: usize = 32;

    pub(crate) fn decode(record: &[u8]) -> Result<Self, FieldDefect> {
        use ReverseAction as Action;
        let bits = le32(record, 28);
        let action = match bits & 0x1fff_ffff {
            1 => Action::Map,
            2 => Action::MapShared,
            3 => Action::Unmap,
            4 => Action::UnmapShared,
            5 => Action::Convert,
            6 => Action::ConvertShared,
            7 => Action::Allocate,
            8 => Action::Free,
            _ => return Err(unknown("me_flags", bits)),
        };
        let flags = REVERSE_FLAGS.into_iter().filter(|(bit, _)| bits & bit != 0);
        Ok(Self {
            action,
            owner: RmapOwner(le64(record, 0)),
            start: FsBlock(le64(record, 8)),
            offset: FileBlock(le64(record, 16)),
            len: le32(record, 24),
            flags: flags.fold(RmapFlags::empty(), |flags, (_, flag)| flags | flag),
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let flags = REVERSE_FLAGS.into_iter().filter(|(_, flag)| self.flags.contains(*flag));
        let bits = flags.fold(self.action as u32, |bits, (bit, _)| bits | bit);
        encode_extent(out, [self.owner.0, self.start.0, self.offset.0], self.len, bits);
    }
}

/// What happens to a reference count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefcountAction {
    /// It grows by one.
    Increase = 1,
    /// It shrinks by one; blocks without a reference are freed.
    Decrease = 2,
    /// The blocks are set aside for copy-on-write.
    AllocateCow = 3,
    /// They no longer are.
    FreeCow = 4,
}

/// A change of reference counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefcountChange {
    /// What happens.
    pub action: RefcountAction,
    /// First block.
    pub start: FsBlock,
    /// Length in blocks.
    pub len: u32,
}

impl RefcountChange {
    pub(crate) const LEN: usize = 16;

    pub(crate) fn decode(record: &[u8]) -> Result<Self, FieldDefect> {
        let bits = le32(record, 12);
        let action = match bits {
            1 => RefcountAction::Increase,
            2 => RefcountAction::Decrease,
            3 => RefcountAction::AllocateCow,
            4 => RefcountAction::FreeCow,
            _ => return Err(unknown("pe_flags", bits)),
        };
        Ok(Self { action, start: FsBlock(le64(record, 0)), len: le32(record, 8) })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.start.0.to_le_bytes());
        out.extend(self.len.to_le_bytes());
        out.extend((self.action as u32).to_le_bytes());
    }
}

/// What happens to a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MappingAction {
    /// It appears; its blocks are allocated already.
    Map = 1,
    /// It is removed; its blocks stay allocated.
    Unmap = 2,
}

/// A change of a mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingChange {
    /// What happens.
    pub action: MappingAction,
    /// The file.
    pub inode: InodeNumber,
    /// First block on the device.
    pub start: FsBlock,
    /// First block in the file.
    pub offset: FileBlock,
    /// Length in blocks.
    pub len: u32,
    /// The mapping is one of the attribute fork.
    pub attr_fork: bool,
    /// The blocks are unwritten.
    pub unwritten: bool,
    /// The blocks are on the realtime device.
    pub realtime: bool,
}

impl MappingChange {
    pub(crate) const LEN: usize = 32;
    const ATTR_FORK: u32 = 1 << 31;
    const UNWRITTEN: u32 = 1 << 30;
    const REALTIME: u32 = 1 << 29;

    pub(crate) fn decode(record: &[u8]) -> Result<Self, FieldDefect> {
        let bits = le32(record, 28);
        let action = match bits & 0x1fff_ffff {
            1 => MappingAction::Map,
            2 => MappingAction::Unmap,
            _ => return Err(unknown("me_flags", bits)),
        };
        Ok(Self {
            action,
            inode: InodeNumber(le64(record, 0)),
            start: FsBlock(le64(record, 8)),
            offset: FileBlock(le64(record, 16)),
            len: le32(record, 24),
            attr_fork: bits & Self::ATTR_FORK != 0,
            unwritten: bits & Self::UNWRITTEN != 0,
            realtime: bits & Self::REALTIME != 0,
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        let bits = self.action as u32
            | bit(self.attr_fork, Self::ATTR_FORK)
            | bit(self.unwritten, Self::UNWRITTEN)
            | bit(self.realtime, Self::REALTIME);
        encode_extent(out, [self.inode.0, self.start.0, self.offset.0], self.len, bits);
    }
}

fn encode_extent(out: &mut Vec<u8>, numbers: [u64; 3], len: u32, bits: u32) {
    numbers.into_iter().for_each(|number| out.extend(number.to_le_bytes()));
    out.extend(len.to_le_bytes());
    out.extend(bits.to_le_bytes());
}

fn unknown(field: &'static str, bits: u32) -> FieldDefect {
    FieldDefect { field, found: bits.into(), rule: Rule::Text("an action and flags that exist") }
}

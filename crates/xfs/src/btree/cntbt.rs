//! Free space by size.

use super::kind::BtreeKind;
use crate::format::{AllocRecord, FieldDefect, TreeGeometry, TreeKind};
use crate::units::AgBlock;

/// The tree of free extents ordered by length, then by first block.
#[derive(Debug)]
pub enum Cntbt {}

/// Key of a free extent: its length, then its first block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SizeKey {
    /// Length in blocks.
    pub len: u32,
    /// First block.
    pub start: AgBlock,
}

impl BtreeKind for Cntbt {
    const TREE: TreeKind = TreeKind::Cntbt;
    const RECORD_LEN: usize = AllocRecord::LEN;
    const KEY_LEN: usize = AllocRecord::LEN;
    const OVERLAPPING: bool = false;
    /// Near mode looks through the last leaf by size: with the same leaves as a kernel it makes the
    /// same choices.
    const SHIFTS_ONE: bool = true;
    type Record = AllocRecord;
    type Key = SizeKey;
    type Pointer = AgBlock;

    #[inline]
    fn decode(bytes: &[u8], _: &TreeGeometry) -> AllocRecord {
        AllocRecord::decode(bytes)
    }

    fn encode(record: &AllocRecord, _: &TreeGeometry, out: &mut [u8]) {
        record.encode(out);
    }

    fn validate(record: &AllocRecord) -> Result<(), FieldDefect> {
        record.validate()
    }

    #[inline]
    fn key(record: &AllocRecord) -> SizeKey {
        SizeKey { len: record.len, start: record.start }
    }

    fn high_key(record: &AllocRecord) -> SizeKey {
        Self::key(record)
    }

    #[inline]
    fn decode_key(bytes: &[u8]) -> SizeKey {
        Self::key(&AllocRecord::decode(bytes))
    }

    fn encode_key(key: &SizeKey, out: &mut [u8]) {
        AllocRecord { start: key.start, len: key.len }.encode(out);
    }
}

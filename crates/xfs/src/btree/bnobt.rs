//! Free space by block.

use super::kind::BtreeKind;
use crate::format::{AllocRecord, FieldDefect, TreeGeometry, TreeKind};
use crate::units::AgBlock;
use std::cmp::Ordering;

/// The tree of free extents ordered by first block.
#[derive(Debug)]
pub enum Bnobt {}

/// Key of a free extent: its first block. The length is stored with the key but does not order.
#[derive(Clone, Copy, Debug)]
pub struct BlockKey {
    /// First block.
    pub start: AgBlock,
    /// Length in blocks.
    pub len: u32,
}

impl BlockKey {
    /// A key to search an extent by its first block.
    #[must_use]
    pub const fn at(start: AgBlock) -> Self {
        Self { start, len: 0 }
    }
}

impl PartialEq for BlockKey {
    fn eq(&self, other: &Self) -> bool {
        self.start == other.start
    }
}

impl Eq for BlockKey {}

impl PartialOrd for BlockKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BlockKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.start.cmp(&other.start)
    }
}

impl BtreeKind for Bnobt {
    const TREE: TreeKind = TreeKind::Bnobt;
    const RECORD_LEN: usize = AllocRecord::LEN;
    const KEY_LEN: usize = AllocRecord::LEN;
    const OVERLAPPING: bool = false;
    /// A split takes a block of the free list: as often as with a kernel, the list is the same.
    const SHIFTS_ONE: bool = true;
    type Record = AllocRecord;
    type Key = BlockKey;
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
    fn key(record: &AllocRecord) -> BlockKey {
        BlockKey { start: record.start, len: record.len }
    }

    fn high_key(record: &AllocRecord) -> BlockKey {
        let last = record.start.0.saturating_add(record.len.saturating_sub(1));
        BlockKey::at(AgBlock(last))
    }

    #[inline]
    fn decode_key(bytes: &[u8]) -> BlockKey {
        Self::key(&AllocRecord::decode(bytes))
    }

    fn encode_key(key: &BlockKey, out: &mut [u8]) {
        AllocRecord { start: key.start, len: key.len }.encode(out);
    }
}

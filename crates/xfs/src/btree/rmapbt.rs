//! Reverse mappings: the one tree whose records overlap.

use super::kind::BtreeKind;
use crate::format::{FieldDefect, RmapKey, RmapRecord, TreeGeometry, TreeKind};
use crate::units::AgBlock;

/// The tree of reverse mappings.
#[derive(Debug)]
pub enum Rmapbt {}

impl BtreeKind for Rmapbt {
    const TREE: TreeKind = TreeKind::Rmapbt;
    const RECORD_LEN: usize = RmapRecord::LEN;
    const KEY_LEN: usize = RmapKey::LEN;
    const OVERLAPPING: bool = true;
    type Record = RmapRecord;
    type Key = RmapKey;
    type Pointer = AgBlock;

    #[inline]
    fn decode(bytes: &[u8], _: &TreeGeometry) -> RmapRecord {
        RmapRecord::decode(bytes)
    }

    fn encode(record: &RmapRecord, _: &TreeGeometry, out: &mut [u8]) {
        record.encode(out);
    }

    fn validate(record: &RmapRecord) -> Result<(), FieldDefect> {
        record.validate()
    }

    #[inline]
    fn key(record: &RmapRecord) -> RmapKey {
        record.key()
    }

    #[inline]
    fn high_key(record: &RmapRecord) -> RmapKey {
        record.high_key()
    }

    #[inline]
    fn decode_key(bytes: &[u8]) -> RmapKey {
        RmapKey::decode(bytes)
    }

    fn encode_key(key: &RmapKey, out: &mut [u8]) {
        key.encode(out);
    }
}

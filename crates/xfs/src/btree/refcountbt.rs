//! Reference counts.

use super::kind::BtreeKind;
use crate::format::{FieldDefect, RefcountKey, RefcountRecord, TreeGeometry, TreeKind};
use crate::units::AgBlock;

/// The tree of reference counts: shared blocks, then copy-on-write staging blocks.
#[derive(Debug)]
pub enum Refcountbt {}

impl BtreeKind for Refcountbt {
    const TREE: TreeKind = TreeKind::Refcountbt;
    const RECORD_LEN: usize = RefcountRecord::LEN;
    const KEY_LEN: usize = RefcountKey::LEN;
    const OVERLAPPING: bool = false;
    type Record = RefcountRecord;
    type Key = RefcountKey;
    type Pointer = AgBlock;

    #[inline]
    fn decode(bytes: &[u8], _: &TreeGeometry) -> RefcountRecord {
        RefcountRecord::decode(bytes)
    }

    fn encode(record: &RefcountRecord, _: &TreeGeometry, out: &mut [u8]) {
        record.encode(out);
    }

    fn validate(record: &RefcountRecord) -> Result<(), FieldDefect> {
        record.validate()
    }

    #[inline]
    fn key(record: &RefcountRecord) -> RefcountKey {
        record.key()
    }

    fn high_key(record: &RefcountRecord) -> RefcountKey {
        let last = record.start.0.saturating_add(record.len.saturating_sub(1));
        RefcountKey { start: AgBlock(last), ..record.key() }
    }

    #[inline]
    fn decode_key(bytes: &[u8]) -> RefcountKey {
        RefcountKey::decode(bytes)
    }

    fn encode_key(key: &RefcountKey, out: &mut [u8]) {
        key.encode(out);
    }
}

//! Mappings of one file fork, rooted in the inode.

use super::kind::BtreeKind;
use crate::bytes::{be64, put_be64};
use crate::format::{Extent, FieldDefect, TreeGeometry, TreeKind};
use crate::units::{FileBlock, FsBlock};

/// The tree of mappings of a data or attribute fork.
#[derive(Debug)]
pub enum Bmbt {}

impl BtreeKind for Bmbt {
    const TREE: TreeKind = TreeKind::Bmbt;
    const RECORD_LEN: usize = Extent::LEN;
    const KEY_LEN: usize = 8;
    const OVERLAPPING: bool = false;
    type Record = Extent;
    type Key = FileBlock;
    type Pointer = FsBlock;

    #[inline]
    fn decode(bytes: &[u8], _: &TreeGeometry) -> Extent {
        Extent::decode(bytes)
    }

    fn encode(record: &Extent, _: &TreeGeometry, out: &mut [u8]) {
        record.encode(out);
    }

    fn validate(record: &Extent) -> Result<(), FieldDefect> {
        record.validate()
    }

    #[inline]
    fn key(record: &Extent) -> FileBlock {
        record.offset
    }

    fn high_key(record: &Extent) -> FileBlock {
        FileBlock(record.end().0.saturating_sub(1))
    }

    #[inline]
    fn decode_key(bytes: &[u8]) -> FileBlock {
        FileBlock(be64(bytes, 0))
    }

    fn encode_key(key: &FileBlock, out: &mut [u8]) {
        put_be64(out, 0, key.0);
    }
}

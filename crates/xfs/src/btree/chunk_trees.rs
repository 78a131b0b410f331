//! The two trees of inode chunks: all of them, and those with a free inode.
//!
//! Records and order are the same; only the magic number tells the trees apart.

use super::kind::BtreeKind;
use crate::bytes::{be32, put_be32};
use crate::format::{FieldDefect, InodeChunkRecord, TreeGeometry, TreeKind};
use crate::units::{AgBlock, AgInode};

/// The tree of all inode chunks.
#[derive(Debug)]
pub enum Inobt {}

/// The tree of inode chunks with at least one free inode.
#[derive(Debug)]
pub enum Finobt {}

macro_rules! chunk_tree {
    ($kind:ident) => {
        impl BtreeKind for $kind {
            const TREE: TreeKind = TreeKind::$kind;
            const RECORD_LEN: usize = InodeChunkRecord::LEN;
            const KEY_LEN: usize = 4;
            const OVERLAPPING: bool = false;
            type Record = InodeChunkRecord;
            type Key = AgInode;
            type Pointer = AgBlock;

            #[inline]
            fn decode(bytes: &[u8], geometry: &TreeGeometry) -> InodeChunkRecord {
                InodeChunkRecord::decode(bytes, geometry.sparse_inodes)
            }

            fn encode(record: &InodeChunkRecord, geometry: &TreeGeometry, out: &mut [u8]) {
                record.encode(geometry.sparse_inodes, out);
            }

            fn validate(record: &InodeChunkRecord) -> Result<(), FieldDefect> {
                record.validate()
            }

            #[inline]
            fn key(record: &InodeChunkRecord) -> AgInode {
                record.start
            }

            fn high_key(record: &InodeChunkRecord) -> AgInode {
                AgInode(record.start.0.saturating_add(u32::from(InodeChunkRecord::INODES) - 1))
            }

            #[inline]
            fn decode_key(bytes: &[u8]) -> AgInode {
                AgInode(be32(bytes, 0))
            }

            fn encode_key(key: &AgInode, out: &mut [u8]) {
                put_be32(out, 0, key.0);
            }
        }
    };
}

chunk_tree!(Inobt);
chunk_tree!(Finobt);

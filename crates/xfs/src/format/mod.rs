//! On-disk structures: bytes only, no I/O. One file per structure.

mod alloc_record;
mod bmap_record;
mod bmap_root;
mod btree_block;
mod inode_record;
mod kind;
mod refcount_record;
mod rmap_record;

pub use alloc_record::AllocRecord;
pub use bmap_record::Extent;
pub use bmap_root::BmapRoot;
pub use btree_block::{
    FieldDefect, HeaderLayout, HeaderStamps, HeightLimit, MAX_TREE_HEIGHT, NewHeader, Rule,
    TreeGeometry, block_capacity,
};
pub use inode_record::InodeChunkRecord;
pub use kind::{BufferKind, TreeKind};
pub use refcount_record::{RefcountDomain, RefcountKey, RefcountRecord};
pub use rmap_record::{RmapFlags, RmapKey, RmapOwner, RmapRecord};

//! Trees: their blocks, and the records in them.

mod alloc_record;
mod block;
mod bmap_record;
mod bmap_root;
mod height;
mod inode_record;
mod refcount_record;
mod rmap_record;
mod verify;

pub use alloc_record::AllocRecord;
pub use block::{
    HeaderLayout, HeightLimit, MAX_TREE_HEIGHT, NewHeader, TreeGeometry, block_capacity,
};
pub use bmap_record::Extent;
pub use bmap_root::BmapRoot;
pub use height::TreeHeights;
pub use inode_record::InodeChunkRecord;
pub use refcount_record::{RefcountDomain, RefcountKey, RefcountRecord};
pub use rmap_record::{RmapFlags, RmapKey, RmapOwner, RmapRecord};
pub use verify::verify_tree_block;

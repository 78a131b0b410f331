//! The trees of a group: one open in a transaction ([`AgTree`]), the tree of owners ([`rmap`]), and
//! reading of all of them.
//!
//! The trees that describe the free space and its owners take their blocks from the free list of
//! the group. The others take them from the allocator, which stands above ([`BlockSource`]).

mod free_list;
mod read;
pub mod rmap;
mod shared;
mod source;
mod tree;

pub(crate) use free_list::{FreeList, put_on_list};
pub(crate) use read::{
    FreePart, first_inode_chunk, is_inode_in_use, owners, tree_blocks, with_free_extents,
};
pub use read::{first_shared, free_extents, inode_chunks, shared_extents, staging_extents};
pub(crate) use shared::{is_shared, visit_counts};
pub use source::BlockSource;
pub use tree::AgTree;

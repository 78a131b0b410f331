//! Mapping of file blocks to blocks of the volume.
//!
//! In memory a fork has the list of all its extents; on disk it is the list in the inode or a tree
//! rooted there. Every change is made to both in one transaction, together with the reverse
//! mapping. Rules of records and conversions: docs/algorithms/file-mapping.md.

mod ahead;
mod allocate;
mod change;
mod convert;
mod da_fork;
mod edit;
mod groups;
mod load;
mod owner;
mod target;
mod tree;
pub(crate) mod worst_case;

pub use ahead::{ahead, window};
pub(crate) use allocate::map;
pub use allocate::{AllocationWindow, allocate, find_space};
pub(crate) use change::relocate;
pub use change::{
    add, bounded, convert, detach, prepare, remove, replace, replace_shared, shift, tree_blocks,
};
pub use da_fork::{ForkReader, ForkWriter};
pub(crate) use groups::groups;
pub use groups::tree_groups;
pub use load::extents;
pub(crate) use owner::transfer;
pub(crate) use tree::{relocate_tree_block, tree_block_list};

//! Extent allocation.
//!
//! - [`allocate_best`]: for file data, the longest extent there is up to the length wanted, by a
//!   sequence of ever weaker requests (docs/algorithms/choice-of-group.md#attempts-for-file-data);
//! - [`allocate`]: one request, over the groups from the target's
//!   (docs/algorithms/choice-of-group.md#iteration);
//! - [`allocate_in_group`]: one request inside a group whose lock is held
//!   (docs/algorithms/allocation.md).
//!
//! Each [`Mode`] only searches; trees, headers and reverse mappings are changed once, after
//! success, by `take`.

mod best;
mod by_size;
mod exact;
mod experiment;
mod free;
mod freelist;
mod groups;
mod insert;
mod mode;
mod near;
mod own_blocks;
mod room;
mod search;
mod small;
mod spared;
mod tail;
mod take;
mod tree;
mod unowned;

pub use crate::space::{Allocation, BusyBlocks, Request};
pub use best::{EndOfFile, allocate_best};
pub use free::free_in_group;
pub use freelist::fill as fill_free_list;
pub use groups::allocate;
pub use mode::{Mode, allocate_in_group};
pub(crate) use own_blocks::{for_each_own_block, move_own_block, own_blocks_behind};
pub(crate) use room::{from_room, return_all, return_if_scarce};
pub(crate) use spared::{check_spared, take_spared};
pub(crate) use tail::cut_tail;
pub use tree::SpaceTree;

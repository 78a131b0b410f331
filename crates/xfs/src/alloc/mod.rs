//! Extent allocation.
//!
//! - [`allocate_best`]: for file data, the longest extent there is up to the length wanted, by a
//!   sequence of ever weaker requests (algorithms reference, section 3.3);
//! - [`allocate`]: one request, over the groups from the target's (section 3.2);
//! - [`allocate_in_group`]: one request inside a group whose lock is held (section 2).
//!
//! Each [`Mode`] only searches; trees, headers and reverse mappings are changed once, after
//! success, by `take`. Near mode has several [variants](Variant) behind one interface: which of
//! them an open volume uses is a property of the handle, and the disk looks the same to all of
//! them.

mod best;
mod by_size;
mod exact;
mod free;
mod freelist;
mod groups;
mod index;
mod indexed;
mod mode;
mod near;
mod request;
mod search;
mod small;
mod space;
mod take;
mod trace;
mod unowned;
mod variant;

pub use best::{EndOfFile, allocate_best};
pub use free::free_in_group;
pub use freelist::fill as fill_free_list;
pub(crate) use freelist::{longest_usable, max_usable};
pub use groups::allocate;
pub(crate) use index::FreeIndex;
pub use mode::{Mode, allocate_in_group};
pub use request::{Allocation, BusyBlocks, Pool, Request};
pub(crate) use space::{FreeSpace, Reservation};
pub use trace::{AllocationEvent, AllocationStep, AllocationTrace};
pub(crate) use variant::Allocator;
pub use variant::{AllocatorOptions, Variant};

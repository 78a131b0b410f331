//! Free space: the amount of a volume, the part that is reserved, and requests for extents.
//!
//! The allocator (`alloc`) answers a [`Request`]; how it chooses is [`AllocatorOptions`].

mod free_space;
mod request;
mod trace;
mod variant;

pub(crate) use free_space::{FreeSpace, Reservation};
pub use request::{Allocation, BusyBlocks, Pool, Request};
pub use trace::{AllocationEvent, AllocationStep, AllocationTrace};
pub(crate) use variant::Allocator;
pub use variant::{AllocatorOptions, Variant};

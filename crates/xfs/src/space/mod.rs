//! Free space: the amount of a volume, the part that is reserved, and requests for extents.
//!
//! The allocator (`alloc`) answers a [`Request`].

mod free_space;
mod request;

pub(crate) use free_space::{FreeSpace, Reservation};
pub use request::{Allocation, BusyBlocks, Pool, Request};

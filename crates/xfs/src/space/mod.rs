//! Free space: the amount of a volume, the part that is reserved, and requests for extents.
//!
//! The allocator (`alloc`) answers a [`Request`]; an experiment may put another [`NearSearch`] in the
//! place of near mode.

mod free_space;
mod near_search;
mod request;

pub(crate) use free_space::{FreeSpace, Reservation};
pub use near_search::{NearSearch, NearSteps};
pub use request::{Allocation, BusyBlocks, Pool, Request};

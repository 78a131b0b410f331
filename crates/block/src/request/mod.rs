//! A request: merged bios on consecutive sectors, as handed to a driver.
//!
//! A driver looks at the request, moves the bytes of [`gather`](Request::gather) or
//! [`scatter`](Request::scatter), and hands it back in [`Completions`](crate::Completions); the
//! queue layer then answers every bio in it once. When a driver drops a request instead, its bios
//! complete with [`Reason::Dropped`](crate::Reason::Dropped), and its tag comes back.

mod admission;
mod body;
pub(crate) mod dropped;
mod ending;
mod failure;
mod list;
mod order;

pub(crate) use admission::Terms;
pub(crate) use body::Receivers;
pub use body::Request;
pub use failure::Failure;
pub use list::RequestList;
pub(crate) use order::{Ordered, OverlapTracker};

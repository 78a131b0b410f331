//! The queue of a leaf: from requests to a driver and back.
//!
//! ```text
//! plug -> gate, checks -> order of overlaps -> hardware queue -> tag -> driver queue
//!                                                                           |
//!         bios answered <- placement <- statistics <- tag back <------------+
//! ```
//!
//! A hardware queue is driven by its own threads, or by a submitter that has
//! [claimed](crate::Claim) one; a device whose driver answers at once needs neither.

mod gate;
mod hardware;
mod leaf;
mod options;

pub use leaf::Leaf;
pub use options::{Drive, QueueOptions};

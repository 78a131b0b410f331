//! The queue of a leaf: from requests to a driver and back.
//!
//! ```text
//! plug -> admit -> order of overlaps -> hardware queue -> driver queue
//!                                                            |
//!         bios answered <- completion <----------------------+
//! ```

mod hardware;
mod leaf;
mod list;
mod options;
mod order;
mod worker;

pub use leaf::Leaf;
pub use list::RequestList;
pub use options::{Drive, OverlapOrder, QueueOptions};

use crate::device::Limits;
use crate::statistics::Statistics;

/// The queue of a leaf, as the layers above see it. Every [`Leaf`] has one; nothing else does.
pub trait RequestQueue: Send + Sync {
    /// Name of the device.
    fn name(&self) -> &str;

    /// What requests must look like.
    fn limits(&self) -> Limits;

    /// Takes all `requests`, in their order as far as it matters.
    fn submit(&self, requests: &mut RequestList);

    /// What passed so far.
    fn statistics(&self) -> Statistics;

    /// Waits until every request submitted before has been answered.
    fn drain(&self);

    /// Sends on what is held back by policy.
    fn unplug(&self);
}

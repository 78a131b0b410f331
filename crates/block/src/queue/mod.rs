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

mod attendant;
pub(crate) mod claim;
mod completer;
mod drive;
mod entrance;
mod finish;
mod gate;
mod hardware;
mod hardware_set;
mod home;
mod leaf;
mod list;
mod lookout;
mod mailbox;
mod map;
mod options;
mod order;
mod promises;
mod several;
mod shared;
mod staging;
pub(crate) mod worker;

pub use claim::Claim;
pub use completer::Completer;
pub(crate) use home::take_back;
pub use leaf::{Frozen, Leaf};
pub use list::RequestList;
pub use options::{Drive, OverlapOrder, QueueOptions, Staging, UnplugMode};
pub(crate) use order::{Ordered, OverlapTracker};

use crate::affinity::Placement;
use crate::device::Limits;
use crate::drivers::OpenError;
use crate::statistics::{QueueLatencies, QueueReport, Statistics, Writers};

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

    /// The same for each hardware queue: the leaf's own, those claimed, and the rest.
    fn hardware_queues(&self) -> Vec<QueueReport>;

    /// How long requests took so far, from submission to the answer.
    fn latencies(&self) -> QueueLatencies;

    /// Waits until every request submitted before has been answered.
    fn drain(&self);

    /// Refuses everything from now on, stops what is in flight as far as the driver can, and waits
    /// until everything has been answered.
    fn close(&self);

    /// Sends on what is held back by policy.
    fn unplug(&self);

    /// Says where requests are started and answered from now on.
    fn set_placement(&self, placement: &Placement);

    /// Gives this thread a hardware queue of its own; an empty claim if it has one.
    ///
    /// # Errors
    /// When the driver cannot open one more queue.
    fn claim(&self) -> Result<Claim, OpenError>;
}

//! The queue of a leaf, as a device shows it.

use std::fs::File;

use super::claim::Claim;
use super::taken_sectors::Reservations;
use crate::bio::{Bio, Splice};
use crate::driver::OpenError;
use crate::experiments::Placement;
use crate::request::RequestList;
use crate::statistics::{QueueLatencies, QueueReport, Statistics};
use crate::units::{Limits, Sector};

/// The queue of a leaf, as the layers above see it. Every
/// [`Leaf`](crate::Leaf) has one; nothing else does.
pub trait RequestQueue: Send + Sync {
    /// Name of the device.
    fn name(&self) -> &str;

    /// What requests must look like.
    fn limits(&self) -> Limits;

    /// Takes all `requests`, in their order as far as it matters.
    fn submit(&self, requests: &mut RequestList);

    /// The place for a [splice](crate::splice_at) of `length` bytes to `sector` on, if it would do.
    fn splice_target(&self, sector: Sector, length: u64) -> Option<&File>;

    /// Has `splice` move the bytes of `bio`, a write without memory, in this thread, and answers it.
    /// False if nothing was moved; then the bio is gone.
    fn splice(&self, bio: Bio, splice: &mut Splice<'_>) -> bool;

    /// What passed so far.
    fn statistics(&self) -> Statistics;

    /// The same for each hardware queue: the leaf's own, those claimed, and the rest.
    fn hardware_queues(&self) -> Vec<QueueReport>;

    /// How long requests took so far, from submission to the answer.
    fn latencies(&self) -> QueueLatencies;

    /// Waits until every request submitted before has been answered.
    fn drain(&self);

    /// Refuses bios from now on, stops requests in flight as far as the driver can, and waits until
    /// all have been answered.
    fn close(&self);

    /// For [experiments](crate::experiments): says where requests are started and answered from now on.
    fn set_placement(&self, placement: &Placement);

    /// Its sectors that have a [holder](crate::Reserved).
    fn reservations(&self) -> &Reservations;

    /// Gives this thread a hardware queue of its own; an empty claim if it has one.
    ///
    /// # Errors
    /// When the driver cannot open one more queue.
    fn claim(&self) -> Result<Claim, OpenError>;
}

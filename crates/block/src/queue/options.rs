//! How the queue of a leaf works: choices of the program that opens the device.

use std::time::Duration;

use crate::affinity::CpuSet;
use crate::experiments::OverlapOrder;

/// How a leaf queues, orders and drives its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// The threads that drive the hardware queues.
    pub drive: Drive,
    /// Hardware queues for submitters that have not claimed one; CPUs are spread over them.
    pub hardware_queues: usize,
    /// CPUs that the threads of each hardware queue are bound to; those without an entry run
    /// anywhere.
    pub thread_cpus: Vec<CpuSet>,
    /// Requests in flight in one hardware queue.
    pub depth: u32,
    /// Bytes of requests that may wait for a thread of the queue before submitting blocks. One
    /// request may always wait, of any size.
    pub queue_bytes: u64,
    /// Whether requests that overlap keep their order: only experiments leave it to submitters.
    pub order: OverlapOrder,
    /// How long a request may be in the driver, however its queue is driven. Then its bios are
    /// answered with [`Reason::TimedOut`](crate::Reason::TimedOut), by a thread that the device has
    /// for this, and the driver is asked to stop it. A thread that has claimed a queue has to
    /// collect what ended in that time. Other submitters do nothing in the driver themselves, even
    /// if they only wait (but see [`Drive::Inline`]): they could not be answered while they are
    /// stuck there.
    ///
    /// A request that timed out may still be carried out at any time, so the driver keeps its resources until
    /// it hands the request in, or drops it. These are the memory, so a read completes without its
    /// buffer; the tag, so no other request gets it; and the place in the order of overlapping
    /// requests (with [`OverlapOrder::LeftToSubmitters`] such a write can overwrite newer data).
    /// Its result is ignored then.
    ///
    /// A request that waits for a tag or for others has no limit as long as these are done in time.
    /// But while the driver keeps any request of the device beyond its limit, the limit also holds
    /// for waiting requests, from their submission on, since they may wait for one that never ends:
    /// when a driver has all tags and gives none back, submitters get errors.
    pub time_limit: Option<Duration>,
}

impl Default for QueueOptions {
    /// One thread, which keeps order; as many requests in flight as a ring or a disk has use for.
    fn default() -> Self {
        Self {
            drive: Drive::Threads(1),
            hardware_queues: 1,
            thread_cpus: Vec::new(),
            depth: 256,
            queue_bytes: 16 << 20,
            order: OverlapOrder::Kept,
            time_limit: None,
        }
    }
}

/// The threads that drive a hardware queue, unless a submitter has claimed one for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// None: the driver does each request in the thread that submits it, before submitting
    /// returns. For drivers that can ([`Driver::execute`](crate::Driver::execute)), such as that of
    /// memory.
    Inline,
    /// So many threads for each hardware queue. One is right for a driver queue that works on many
    /// requests at a time, several for one that blocks its thread with each.
    Threads(usize),
}

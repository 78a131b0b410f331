//! How the queue of a leaf works: choices of whoever opens the device.

/// How a leaf queues, orders and drives its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueOptions {
    /// Who drives the hardware queues.
    pub drive: Drive,
    /// Requests in flight in one hardware queue.
    pub depth: u32,
    /// Bytes of requests that may wait for a thread of the queue before submitting blocks. One
    /// request waits whatever its size.
    pub queue_bytes: u64,
    /// Whether requests that overlap keep their order.
    pub order: OverlapOrder,
}

impl Default for QueueOptions {
    /// One thread, which keeps order; as many requests in flight as a ring or a disk has use for.
    fn default() -> Self {
        Self {
            drive: Drive::Threads(1),
            depth: 256,
            queue_bytes: 16 << 20,
            order: OverlapOrder::Kept,
        }
    }
}

/// Who drives a hardware queue, unless a submitter has claimed one for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// Nobody: the driver does each request in the thread that submits it, before submitting
    /// returns. For drivers that can ([`Driver::execute`](crate::Driver::execute)).
    Inline,
    /// So many threads for each hardware queue. One is right for a driver queue that works on many
    /// requests at a time, several for one that blocks its thread with each.
    Threads(usize),
}

/// What becomes of requests that overlap while one of them, which modifies, is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlapOrder {
    /// They take effect in the order of their submission; a flush waits for what was submitted
    /// before it.
    Kept,
    /// Submitters see to it that there are none, and that what a flush must cover is complete. No
    /// state is shared between hardware queues then.
    LeftToSubmitters,
}

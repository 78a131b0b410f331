//! Whether a queue keeps requests that overlap in order.

/// The treatment of requests that overlap while one of them, which modifies, is not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlapOrder {
    /// They take effect in the order of their submission; a flush waits for the requests submitted
    /// before it.
    Kept,
    /// Submitters see to it that there are none, and that what a flush must cover is complete. No
    /// state is shared between hardware queues then.
    LeftToSubmitters,
}

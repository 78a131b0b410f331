//! What the opener of a leaf is told besides its description.

use std::time::Duration;

/// What the opener of a leaf is told besides its description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafOptions {
    /// Whether operations that modify are to be refused.
    pub read_only: bool,
    /// The [time limit](crate::QueueOptions::time_limit) of requests, if not that of the driver.
    pub time_limit: Option<Duration>,
}

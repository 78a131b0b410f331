//! What passed through each hardware queue of a leaf.

use std::fmt;

use super::Statistics;

/// Counts of one hardware queue.
///
/// Of all that a leaf reports, the counts add up to its [`Statistics`], but for the locks of staged
/// requests, which belong to no hardware queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueReport {
    /// Which one.
    pub name: QueueName,
    /// Counts of requests submitted to it, started and answered there.
    pub statistics: Statistics,
}

/// What tells a hardware queue of a leaf from the others. Displays as a word or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueName {
    /// One of the leaf, by its number.
    Own(usize),
    /// One that a submitter has claimed, by its number; they follow those of the leaf.
    Claimed(usize),
    /// All that were claimed and given back, together.
    GivenBack,
    /// What ended in threads of the driver, wherever it was submitted.
    DriverThreads,
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(number) => write!(f, "queue {number}"),
            Self::Claimed(number) => write!(f, "claim {number}"),
            Self::GivenBack => f.write_str("past claims"),
            Self::DriverThreads => f.write_str("driver threads"),
        }
    }
}

//! Errors of making and changing a set.

use thiserror::Error;

/// A set, a caller or a resize that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A depth of zero.
    #[error("a tag set of depth 0 would make every caller wait for ever; give it at least one tag")]
    NoTags,
    /// A depth above the limit of the library.
    #[error("depth {depth} is above {most}, the most that this set can have")]
    TooManyTags {
        /// The value asked for.
        depth: u32,
        /// The limit.
        most: u32,
    },
    /// A number of wait queues outside 1 to 8.
    #[error("{queues} wait queues; there are 1 to {most}")]
    WaitQueues {
        /// The value asked for.
        queues: usize,
        /// The limit.
        most: usize,
    },
    /// A wake batch that could leave the last waiter asleep.
    #[error("a wake batch of {batch} is not between 1 and {most}, the most that wakes everybody")]
    WakeBatch {
        /// The value asked for.
        batch: u32,
        /// The limit at this depth and policy.
        most: u32,
    },
}

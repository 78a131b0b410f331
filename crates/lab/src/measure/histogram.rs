//! Lines of a histogram as records keep them.

use serde::{Deserialize, Serialize};
use undercroft_xfs::frag::Bucket;

/// Extents whose length or distance is between two numbers of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Least number of blocks.
    pub from: u64,
    /// Greatest number.
    pub to: u64,
    /// Extents.
    pub count: u64,
    /// Sum of their numbers.
    pub blocks: u64,
}

/// The buckets that are not empty.
pub(crate) fn lines(buckets: impl IntoIterator<Item = Bucket>) -> Vec<Line> {
    let line = |Bucket { from, to, count, sum }| Line { from, to, count, blocks: sum };
    buckets.into_iter().filter(|bucket| bucket.count > 0).map(line).collect()
}

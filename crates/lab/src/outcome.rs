//! What experiments find, by kind.

use serde::{Deserialize, Serialize};

use crate::tags::TagsOutcome;

/// The outcome of one variant in one case of an experiment. As JSON the kind is the field
/// `experiment`, in words joined by hyphens such as `tags-depth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
pub enum Outcome {
    /// Tags: one hardware queue of growing depth.
    TagsDepth(TagsOutcome),
    /// Tags: twenty hardware queues that share one set.
    TagsShared(TagsOutcome),
    /// Tags: a thousand threads want one of few tags.
    TagsHerd(TagsOutcome),
    /// Tags: a reader of depth 1 beside one of depth 256.
    TagsFairness(TagsOutcome),
    /// Tags: how much one run differs from the next.
    TagsVariability(TagsOutcome),
}

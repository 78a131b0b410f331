//! What someone who opens a disk says of the volume in it.

use std::fmt;
use undercroft_block::partition::Partition;

/// What is said of the place of a volume; without anything, it is the only one there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The partition that it is or is in.
    pub partition: Option<PartitionChoice>,
    /// The logical volume that it is or is in, as `GROUP/VOLUME`.
    pub logical: Option<String>,
}

/// A partition, as an option names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartitionChoice {
    /// Its number.
    Number(u32),
    /// Its name in the table, or the label of what it holds.
    Name(String),
}

impl Choice {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl PartitionChoice {
    /// From the value of an option.
    #[must_use]
    pub fn of(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Number)
    }

    /// Whether a partition is meant that holds something of this label.
    pub(super) fn names(&self, partition: &Partition, label: Option<&[u8]>) -> bool {
        match self {
            Self::Number(number) => partition.number == *number,
            Self::Name(name) => partition.name == *name || label == Some(name.as_bytes()),
        }
    }
}

impl From<String> for PartitionChoice {
    fn from(text: String) -> Self {
        Self::of(&text)
    }
}

impl fmt::Display for PartitionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Name(name) => write!(f, "\"{}\"", name.escape_debug()),
        }
    }
}

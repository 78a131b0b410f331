//! A partition that is to be made.

use super::PartitionKind;
use std::path::PathBuf;
use uuid::Uuid;

/// A partition that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// What it is for.
    pub kind: PartitionKind,
    /// What it holds.
    pub content: Content,
    /// Its length in bytes; without it, that of its content.
    pub size: Option<u64>,
    /// Its name; without one, that of its kind.
    pub name: Option<String>,
    /// Its identity; without one it follows from what the disk holds.
    pub id: Option<Uuid>,
}

/// What a partition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The volume that is built.
    Volume,
    /// The bytes of a file; of a directory, a FAT file system made from it.
    Path(PathBuf),
    /// Zeros; swap space is initialised.
    Empty(u64),
}

impl Partition {
    /// A partition with a name and an identity of their own accord.
    #[must_use]
    pub fn new(kind: PartitionKind, content: Content) -> Self {
        Self { kind, content, size: None, name: None, id: None }
    }

    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.kind.name())
    }
}

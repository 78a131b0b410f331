//! A described file or directory without its names.

use crate::EntryPath;
use crate::entry::{Kind, Xattr};
use crate::files::{Expected, PartialMetadata};
use std::path::PathBuf;
use std::sync::Arc;

/// Where the contents of a file are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nowhere: it is empty, or no regular file.
    Nowhere,
    /// In the description.
    Inline(Arc<[u8]>),
    /// Below the directory of contents, where the name is in the tree.
    AtPath,
    /// Below the directory of contents.
    Below(EntryPath),
    /// At a path of this machine.
    Host(PathBuf),
}

/// A file or directory without its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    /// A regular file has no size here; its contents have one. In a draft, a hard link stands for the
    /// file of another name.
    pub(super) kind: Kind,
    pub(super) metadata: PartialMetadata,
    pub(super) xattrs: Box<[Xattr]>,
    pub(super) origin: Origin,
    pub(super) expected: Expected,
}

impl File {
    /// What stands in a draft for the file of another name.
    pub(super) fn link(target: EntryPath) -> Self {
        Self {
            kind: Kind::HardLink(target),
            metadata: PartialMetadata::default(),
            xattrs: Box::default(),
            origin: Origin::Nowhere,
            expected: Expected::default(),
        }
    }
}

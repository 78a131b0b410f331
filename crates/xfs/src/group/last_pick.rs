//! Where the last inode of a group came from.
//!
//! The inodes of one directory come out of one chunk until that has none left. As long as nothing else
//! changes in the trees of chunks, the next one is where the last one was, and need not be searched for.

use crate::format::InodeChunkRecord;
use crate::units::{AgBlock, AgInode};

/// A leaf of a tree, and the index of a record in it.
pub(crate) type Place = (AgBlock, usize);

/// A chunk with a free inode, and its places in the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    /// The record, the same in both trees.
    pub(crate) record: InodeChunkRecord,
    /// In the tree of all chunks.
    pub(crate) in_all: Place,
    /// In the tree of chunks with free inodes, if there is one.
    pub(crate) in_free: Option<Place>,
}

/// The chunk that was chosen last, and for a child of which inode of the group; `None` is one elsewhere.
#[derive(Debug, Default)]
pub(super) struct LastPick(Option<(Option<AgInode>, Pick)>);

impl LastPick {
    /// The choice for a child of `parent`, if it is the same as the last one.
    #[inline]
    pub(super) fn get(&self, parent: Option<AgInode>) -> Option<Pick> {
        self.0.filter(|(last, _)| *last == parent).map(|(_, pick)| pick)
    }

    pub(super) fn set(&mut self, parent: Option<AgInode>, pick: Pick) {
        self.0 = Some((parent, pick));
    }

    #[inline]
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }
}

//! One inode under examination, and the state of its examination.

use super::checker::Checker;
use super::finding::Location;
use super::inode_table::{Chunk, InodeTable, Position, Slot};
use crate::format::InodeCore;
use crate::inode::ForkKind;
use crate::units::InodeNumber;

/// The state that the check of inodes works on.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    pub(super) checker: &'a Checker,
    pub(super) table: &'a InodeTable,
}

/// One inode under examination.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) number: InodeNumber,
    pub(super) core: &'a InodeCore,
    /// All of its bytes.
    pub(super) bytes: &'a [u8],
    pub(super) chunk: &'a Chunk,
    /// Its index in the chunk.
    pub(super) index: u32,
    /// Its place in the table.
    pub(super) position: Position,
}

impl Subject<'_> {
    pub(super) fn slot(&self) -> &Slot {
        self.chunk.slot(self.index)
    }

    pub(super) fn location(&self) -> Location {
        Location::Inode(self.number)
    }

    /// Bytes of a fork in the inode.
    pub(super) fn fork_bytes(&self, checker: &Checker, kind: ForkKind) -> &[u8] {
        let range = match kind {
            ForkKind::Data => self.core.data_fork(checker.geometry()),
            ForkKind::Attr => self.core.attr_fork(checker.geometry()),
        };
        &self.bytes[range]
    }
}

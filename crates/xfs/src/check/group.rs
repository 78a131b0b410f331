//! The facts in the metadata of one allocation group.

use super::claim_list::ClaimList;
use crate::format::{Agf, Agi, InodeChunkRecord, RefcountRecord, RmapFlags, RmapOwner, RmapRecord};
use crate::units::{AgBlock, FileBlock};

/// Owner of free blocks in the map of all blocks; never on disk.
pub(super) const FREE: RmapOwner = RmapOwner(u64::MAX);

/// The facts in the metadata of a group itself.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Free-space header, unless it is damaged.
    pub(super) agf: Option<Agf>,
    /// Inode header, unless it is damaged.
    pub(super) agi: Option<Agi>,
    /// Inode chunks, ascending and disjoint.
    pub(super) chunks: Vec<InodeChunkRecord>,
    /// Records of the reverse mapping tree.
    pub(super) rmaps: ClaimList,
    /// Records of the reference count tree, shared blocks only.
    pub(super) shared: Vec<RefcountRecord>,
    /// The owners of blocks as far as the group knows; free extents are owned by [`FREE`].
    pub(super) claims: ClaimList,
    /// Whether the claims of the group are complete.
    pub(super) space_known: bool,
    /// Whether `rmaps` is complete.
    pub(super) rmaps_known: bool,
    /// Whether `shared` is complete.
    pub(super) shared_known: bool,
}

impl Group {
    /// Adds blocks of a structure to the map.
    pub(super) fn claim(&mut self, start: AgBlock, len: u32, owner: RmapOwner) {
        let (offset, flags) = (FileBlock(0), RmapFlags::empty());
        self.claims.push(&RmapRecord { start, len, owner, offset, flags });
    }

    /// Adds single blocks of a structure to the map.
    pub(super) fn claim_blocks(&mut self, blocks: &[AgBlock], owner: RmapOwner) {
        for block in blocks {
            self.claim(*block, 1, owner);
        }
    }
}

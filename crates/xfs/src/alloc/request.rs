//! What is asked of the allocator, and what it answers.
//!
//! Fields and their meaning: algorithms reference, section 2.1.

use crate::format::RmapOwner;
use crate::units::{AgBlock, AgNumber, FsBlock};

/// Which blocks set aside in a group a request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// None: ordinary space.
    Ordinary,
    /// Blocks for the free list itself.
    FreeList,
    /// Growth of the reference count tree and the free-inode tree.
    Metadata,
}

/// A request for an extent.
#[derive(Clone, Debug)]
pub struct Request {
    /// The block to be at, or near.
    pub target: FsBlock,
    /// Shortest acceptable extent in blocks, at least 1.
    pub min_len: u32,
    /// Longest useful extent in blocks.
    pub max_len: u32,
    /// The start must be a multiple of this, 1 for any.
    pub alignment: u32,
    /// Further blocks that the group must have free beyond an aligned extent, so that an aligned
    /// request can follow a failed exact one.
    pub alignment_slop: u32,
    /// Blocks that must stay free in the group, for mapping blocks still to come.
    pub min_left: u32,
    /// Lowest and highest acceptable start in near mode.
    pub range: Option<(AgBlock, AgBlock)>,
    /// File data: an extent behind the target is taken from its front.
    pub user_data: bool,
    /// Which set-aside blocks may be used.
    pub pool: Pool,
    /// Whose reverse mapping is recorded with the allocation; `None` for file mappings, which
    /// record their own.
    pub owner: Option<RmapOwner>,
}

impl Request {
    /// A request for exactly `len` blocks of metadata of `owner` near `target`.
    #[must_use]
    pub fn metadata(target: FsBlock, len: u32, owner: RmapOwner) -> Self {
        Self {
            target,
            min_len: len,
            max_len: len,
            alignment: 1,
            alignment_slop: 0,
            min_left: 0,
            range: None,
            user_data: false,
            pool: Pool::Ordinary,
            owner: Some(owner),
        }
    }
}

/// An extent that was taken from the free space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Group.
    pub ag: AgNumber,
    /// First block.
    pub start: AgBlock,
    /// Length in blocks.
    pub len: u32,
}

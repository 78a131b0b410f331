//! Requests to the allocator, and its answers.
//!
//! Fields and their meaning: docs/algorithms/allocation.md#request.

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

/// The use that a request may make of blocks whose freeing is not durable yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusyBlocks {
    /// Leave them: writes there do not go through the journal.
    Avoid,
    /// Take them if there are no others.
    LastResort,
    /// Take them like others.
    Take,
}

/// A request for an extent. All lengths are in blocks.
#[derive(Clone, Debug)]
pub struct Request {
    /// The block to be at, or near.
    pub target: FsBlock,
    /// Shortest acceptable extent, at least 1.
    pub min_len: u32,
    /// Longest useful extent, at least `min_len`.
    pub max_len: u32,
    /// The length should be a multiple of this plus `remainder`, 1 for any length. It is given up
    /// where it would take the extent below `min_len`.
    pub multiple: u32,
    /// See `multiple`; below it.
    pub remainder: u32,
    /// The start must be a multiple of this, 1 for any.
    pub alignment: u32,
    /// Further blocks that the group must have free beyond an aligned extent, so that an aligned
    /// request can follow a failed exact one.
    pub alignment_slop: u32,
    /// Blocks that must stay free in the group, for mapping blocks still to come.
    pub min_left: u32,
    /// Blocks that the whole operation may need of the group, 0 for no more than this request: a
    /// group with fewer is passed by.
    pub total: u32,
    /// Lowest and highest acceptable start in near mode.
    pub range: Option<(AgBlock, AgBlock)>,
    /// File data: an extent behind the target is taken from its front.
    pub user_data: bool,
    /// Which set-aside blocks may be used.
    pub pool: Pool,
    /// What becomes of blocks whose freeing is not durable.
    pub busy: BusyBlocks,
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
            multiple: 1,
            remainder: 0,
            alignment: 1,
            alignment_slop: 0,
            min_left: 0,
            total: 0,
            range: None,
            user_data: false,
            pool: Pool::Ordinary,
            busy: BusyBlocks::Avoid,
            owner: Some(owner),
        }
    }

    /// The length to take of `len` usable blocks, where at most `max_len` are wanted
    /// (docs/algorithms/allocation.md#candidates): cut to the wanted form unless that would make it
    /// too short.
    pub(crate) fn fix_length(&self, len: u32, max_len: u32) -> u32 {
        let (multiple, remainder) = (self.multiple, self.remainder);
        let hopeless = remainder == 0 && len < multiple;
        if multiple <= 1 || len < remainder || len == max_len || hopeless {
            return len;
        }
        let fixed = (len - remainder) / multiple * multiple + remainder;
        if fixed < self.min_len { len } else { fixed }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_take_the_wanted_form() {
        let request = Request {
            min_len: 5,
            max_len: 100,
            multiple: 16,
            remainder: 3,
            ..Request::metadata(FsBlock(0), 1, RmapOwner::GROUP)
        };
        assert_eq!(request.fix_length(100, 100), 100);
        assert_eq!(request.fix_length(99, 100), 99);
        assert_eq!(request.fix_length(98, 100), 83);
        assert_eq!(request.fix_length(19, 100), 19);
        // Three blocks would have the form and be too few.
        assert_eq!(request.fix_length(18, 100), 18);
        let plain = Request { multiple: 16, remainder: 0, ..request };
        assert_eq!(plain.fix_length(15, 100), 15);
        assert_eq!(plain.fix_length(31, 100), 16);
    }
}

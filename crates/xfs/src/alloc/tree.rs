//! The free space of a group as the source of blocks for its other trees.
//!
//! Where each tree gets its blocks: docs/algorithms/btrees.md#trees.

use super::free::free_in_group;
use super::mode::{Mode, allocate_in_group};
use crate::btree::{Finobt, Inobt, Refcountbt};
use crate::error::Error;
use crate::format::RmapOwner;
use crate::group::GroupState;
use crate::group_tree::{AgTree, BlockSource};
use crate::space::{BusyBlocks, Pool, Request};
use crate::trans::Transaction;
use crate::units::AgBlock;

/// A tree of a locked group whose blocks are allocated like others: of inodes, free inodes, or
/// reference counts.
pub type SpaceTree<'t, 'v, K> = AgTree<'t, 'v, K, FreeSpaceBlocks>;

/// Trees whose blocks come from the free space.
trait FedByFreeSpace {
    /// The owner of their blocks.
    const OWNER: RmapOwner;
    /// The blocks set aside for them.
    const POOL: Pool;
}

impl FedByFreeSpace for Inobt {
    const OWNER: RmapOwner = RmapOwner::INODE_TREES;
    const POOL: Pool = Pool::Ordinary;
}

impl FedByFreeSpace for Finobt {
    const OWNER: RmapOwner = RmapOwner::INODE_TREES;
    const POOL: Pool = Pool::Metadata;
}

impl FedByFreeSpace for Refcountbt {
    const OWNER: RmapOwner = RmapOwner::REFCOUNT_TREE;
    const POOL: Pool = Pool::Metadata;
}

/// Blocks from the free space.
#[derive(Debug)]
pub struct FreeSpaceBlocks;

impl<K: FedByFreeSpace> BlockSource<K> for FreeSpaceBlocks {
    fn take(
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
        hint: AgBlock,
    ) -> Result<Option<AgBlock>, Error> {
        let target = trans.geometry().fs_block(group.number, hint);
        let busy = BusyBlocks::LastResort;
        let request = Request { pool: K::POOL, busy, ..Request::metadata(target, 1, K::OWNER) };
        let found = allocate_in_group(trans, group, &request, Mode::Near(hint))?;
        Ok(found.map(|extent| extent.start))
    }

    fn give_back(
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
        block: AgBlock,
    ) -> Result<(), Error> {
        free_in_group(trans, group, block, 1, Some(K::OWNER))
    }
}

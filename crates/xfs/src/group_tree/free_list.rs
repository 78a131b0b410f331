//! The free list of a group as the source of blocks for the trees that describe its free space.

use super::source::BlockSource;
use crate::btree::{Bnobt, Cntbt, Rmapbt};
use crate::error::Error;
use crate::format::AllocRecord;
use crate::group::GroupState;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Trees that are fed by the free list. Their blocks count as free space.
trait FedByFreeList {}

impl FedByFreeList for Bnobt {}
impl FedByFreeList for Cntbt {}
impl FedByFreeList for Rmapbt {}

/// Blocks from the free list.
#[derive(Debug)]
pub struct FreeList;

impl<K: FedByFreeList> BlockSource<K> for FreeList {
    fn take(
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
        _hint: AgBlock,
    ) -> Result<Option<AgBlock>, Error> {
        let block = group.take_from_list(trans.geometry())?;
        group.busy.reuse(block, 1);
        Ok(Some(block))
    }

    fn give_back(
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
        block: AgBlock,
    ) -> Result<(), Error> {
        put_on_list(trans, group, block)?;
        if let Some(checkpoint) = trans.volume().open_checkpoint() {
            let freed = AllocRecord { start: block, len: 1 };
            group.busy.insert(freed, checkpoint);
        }
        Ok(())
    }
}

/// Appends a block to the free list.
///
/// # Errors
/// The list is full: its length in the AGF is wrong.
pub(crate) fn put_on_list(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    block: AgBlock,
) -> Result<(), Error> {
    let geometry = trans.geometry();
    group.put_on_list(geometry, block, |list| trans.edit(list))
}

//! Where the trees of a group get their blocks.

use crate::error::Error;
use crate::group::GroupState;
use crate::trans::Transaction;
use crate::units::AgBlock;

/// Where the blocks of a tree come from and go to.
pub trait BlockSource<K> {
    /// Takes a block near `hint`; `None` if there is none.
    ///
    /// # Errors
    /// The trees of the group are damaged, or the free list waits for the journal.
    fn take(
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
        hint: AgBlock,
    ) -> Result<Option<AgBlock>, Error>;

    /// Gives a block back.
    ///
    /// # Errors
    /// The trees of the group are damaged.
    fn give_back(
        trans: &mut Transaction<'_>,
        group: &mut GroupState,
        block: AgBlock,
    ) -> Result<(), Error>;
}

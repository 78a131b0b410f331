//! The seam: another search in the place of near mode.

use crate::error::Error;
use crate::format::AllocRecord;
use crate::space::Request;
use crate::units::{AgBlock, AgNumber};
use std::fmt::Debug;

/// A search for a free extent near a block, in the place of near mode. All of them keep the same
/// trees on disk.
pub trait NearSearch: Debug + Send + Sync {
    /// Looks for an extent; the best that it has made `steps` see is taken. Called with the group
    /// locked: it must not touch the volume by other ways.
    ///
    /// # Errors
    /// Those of the steps.
    fn find(&self, steps: &mut dyn NearSteps) -> Result<(), Error>;

    /// Whether a file stays in its group: where no extent is long enough, if it needs no more of
    /// them there; where another thread has the lock, by waiting for it. Else it goes to the longest
    /// extent of all, wherever it is, and tries other groups first.
    fn stays_in_group(&self) -> bool {
        false
    }

    /// Told of each change of the free space of a group: `old` free extents have become `new` ones,
    /// which lie where the old ones did or beside them. A change that failed on its way is not told;
    /// the volume is not changed any more then.
    fn replaced(&self, group: AgNumber, old: &[AllocRecord], new: &[AllocRecord]) {
        let _ = (group, old, new);
    }
}

/// One search of a [`NearSearch`] in one group: the parts of near mode
/// (docs/algorithms/near-mode.md#search), to be taken in any order, and free extents by hand.
pub trait NearSteps {
    /// The group.
    fn group(&self) -> AgNumber;

    /// Its length in blocks.
    fn group_blocks(&self) -> u32;

    /// The request, with all its limits.
    fn request(&self) -> &Request;

    /// The target, moved into the acceptable range.
    fn hint(&self) -> AgBlock;

    /// Longest extent that may be given: that of the request, cut to what the group can spare.
    fn max_len(&self) -> u32;

    /// The place chosen so far.
    fn best(&self) -> Option<AllocRecord>;

    /// Considers a free extent found elsewhere; `true` if it is the best so far.
    fn consider(&mut self, extent: AllocRecord) -> bool;

    /// All free extents of the group by their place, compared with its header.
    ///
    /// # Errors
    /// The tree is damaged or disagrees with the header, or the device failed.
    fn free_extents(&mut self) -> Result<Vec<AllocRecord>, Error>;

    /// Looks up the extents of full length; with `scan`, considers those in the last leaf of the
    /// by-size tree if there are such. `true` if the search has ended.
    ///
    /// # Errors
    /// Damaged trees, or the device failed; as for all steps.
    fn longest_first(&mut self, scan: bool) -> Result<bool, Error>;

    /// Walks and probes in turn, as near mode does after [`longest_first`](Self::longest_first), to
    /// the end of the search.
    ///
    /// # Errors
    /// As above.
    fn combined(&mut self) -> Result<(), Error>;

    /// Sets two walks off from the hint through the by-block tree.
    ///
    /// # Errors
    /// As above.
    fn start_walks(&mut self) -> Result<(), Error>;

    /// One look of each walk; `true` while there is more to see and none has arrived.
    ///
    /// # Errors
    /// As above.
    fn walk(&mut self) -> Result<bool, Error>;

    /// Lets the other walk go on after one has arrived, as long as it can find something better.
    ///
    /// # Errors
    /// As above.
    fn finish_walks(&mut self) -> Result<(), Error>;

    /// Takes the smallest extent that is long enough, wherever it is, and ends the search.
    ///
    /// # Errors
    /// As above.
    fn by_size(&mut self) -> Result<(), Error>;
}

//! For experiments: the allocator of a volume that has another search in the place of near mode.
//!
//! The rest of the allocator only asks this file, and it answers at once for a volume without one.

use super::by_size;
use super::near::Near;
use super::search::Found;
use crate::btree::{Bnobt, Cursor};
use crate::error::Error;
use crate::experiments::{NearSearch, NearSteps};
use crate::format::AllocRecord;
use crate::group::GroupState;
use crate::group_tree::AgTree;
use crate::space::Request;
use crate::trans::Transaction;
use crate::units::{AgBlock, AgNumber};
use crate::volume::Volume;
use std::ops::ControlFlow;

/// Whether the volume has another search.
#[inline]
pub(super) fn is_under_way(volume: &Volume) -> bool {
    volume.near_search().is_some()
}

/// Finds an extent near `hint` by the other search; `None` without one.
#[inline]
pub(super) fn find(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
    request: &Request,
    hint: AgBlock,
    max_len: u32,
) -> Result<Option<Found>, Error> {
    let Some(search) = trans.volume().near_search() else { return Ok(None) };
    let near = Near::new(group, request, hint, max_len);
    Steps { trans, group, near, ended: None }.take(search).map(Some)
}

/// Tells the other search that `old` free extents have become `new` ones
/// ([`NearSearch::replaced`]).
#[inline]
pub(super) fn tell(
    trans: &Transaction<'_>,
    group: &GroupState,
    old: &[AllocRecord],
    new: &[AllocRecord],
) {
    if let Some(search) = trans.volume().near_search() {
        search.replaced(group.number, old, new);
    }
}

/// Whether files stay in their group ([`NearSearch::stays_in_group`]).
#[inline]
pub(super) fn stays_in_group(volume: &Volume) -> bool {
    volume.near_search().is_some_and(NearSearch::stays_in_group)
}

/// A search made of steps.
struct Steps<'s, 'v> {
    trans: &'s mut Transaction<'v>,
    group: &'s mut GroupState,
    near: Near<'s>,
    /// The end, if a step came to one.
    ended: Option<Found>,
}

impl Steps<'_, '_> {
    fn take(mut self, search: &dyn NearSearch) -> Result<Found, Error> {
        search.find(&mut self)?;
        Ok(self.ended.unwrap_or_else(|| self.near.search.outcome()))
    }
}

impl NearSteps for Steps<'_, '_> {
    fn group(&self) -> AgNumber {
        self.group.number
    }

    fn group_blocks(&self) -> u32 {
        self.group.agf.length
    }

    fn request(&self) -> &Request {
        self.near.search.request
    }

    fn hint(&self) -> AgBlock {
        self.near.search.hint
    }

    fn max_len(&self) -> u32 {
        self.near.search.max_len
    }

    fn best(&self) -> Option<AllocRecord> {
        self.near.search.best.map(|best| AllocRecord { start: best.start, len: best.len })
    }

    fn consider(&mut self, extent: AllocRecord) -> bool {
        self.near.search.consider(self.group, extent)
    }

    fn free_extents(&mut self) -> Result<Vec<AllocRecord>, Error> {
        free_extents(self.trans, self.group)
    }

    fn longest_first(&mut self, scan: bool) -> Result<bool, Error> {
        // Busy extents that were considered before are seen again.
        self.near.search.saw_busy = false;
        self.ended = self.near.longest_first(self.trans, self.group, scan)?;
        Ok(self.ended.is_some())
    }

    fn combined(&mut self) -> Result<(), Error> {
        self.near.combined(self.trans, self.group)
    }

    fn start_walks(&mut self) -> Result<(), Error> {
        self.near.start_walks(self.trans, self.group)
    }

    fn walk(&mut self) -> Result<bool, Error> {
        let arrived = self.near.walk(self.trans, self.group)?;
        Ok(!arrived && self.near.is_walking())
    }

    fn finish_walks(&mut self) -> Result<(), Error> {
        self.near.finish(self.trans, self.group)
    }

    fn by_size(&mut self) -> Result<(), Error> {
        let (request, max_len) = (self.near.search.request, self.near.search.max_len);
        self.ended = Some(by_size::find(self.trans, self.group, request, max_len)?);
        Ok(())
    }
}

/// The free extents of a group by their place, compared with its header.
fn free_extents(
    trans: &mut Transaction<'_>,
    group: &mut GroupState,
) -> Result<Vec<AllocRecord>, Error> {
    let length = group.agf.length;
    let (mut extents, mut end, mut blocks) = (Vec::new(), 0, 0_u64);
    let (mut longest, mut bad) = (0, None);
    let mut tree = AgTree::<Bnobt>::new(trans, group);
    Cursor::<Bnobt>::new().for_each(&mut tree, |record| {
        let record_end = record.start.0.saturating_add(record.len);
        // Neighbours that touch would have been merged.
        if record.start.0 < end || (record.start.0 == end && end > 0) || record_end > length {
            bad = Some(record.start);
            return Ok(ControlFlow::Break(()));
        }
        end = record_end;
        blocks += u64::from(record.len);
        longest = longest.max(record.len);
        extents.push(record);
        Ok(ControlFlow::Continue(()))
    })?;
    if let Some(start) = bad {
        let what = "a free extent that overlaps or touches the one before it, or the group's end";
        return Err(group.corrupt("bnobt", start, what));
    }
    if blocks == u64::from(group.agf.free_blocks) && longest == group.agf.longest {
        Ok(extents)
    } else {
        Err(group.corrupt("bnobt", AgBlock(0), "the free extents disagree with the AGF"))
    }
}

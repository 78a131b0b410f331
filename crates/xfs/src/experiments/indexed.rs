//! Near mode with an index: an extent of the full length close to the hint, in a bounded number of
//! probes, that leaves close space to requests that need it.
//!
//! Free extents are disjoint, so the first that is long enough on each side of a block is the
//! nearest on that side, whether its front or its end is taken; the nearer of the two sides wins.
//! If no extent of the group has the full length, the nearest of the longest is taken: size goes
//! before locality, as in the other variants. An extent of full length can still be unusable
//! (alignment, limits of place, busy blocks): a few further ones are tried on each side, then one
//! that must fit.
//!
//! A search that always takes the nearest extent leaves nothing near to later requests. So
//! - inodes go where there is room for their files: to the nearest extent that is not short among
//!   those of the group, not into the last gap beside the inodes that were there before;
//! - file data that cannot begin at the hint leaves the blocks around it to shorter extents, for
//!   which a place farther away is a greater loss.
//!
//! Third, a file does not leave its group for extents that save it none.

use super::free_index::FreeIndex;
use super::{NearSearch, NearSteps};
use crate::error::Error;
use crate::format::{AllocRecord, RmapOwner};
use crate::units::{AgBlock, AgNumber};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Extents tried on each side of the hint.
const PROBES: usize = 8;

/// Inodes go to an extent of at least the longest one's length divided by this. With 8, files are
/// farther from their inodes than in near mode on volumes of 500 GiB with many free extents of
/// random lengths; with 2, there are more extents than in near mode on such volumes of 20 GiB.
const ROOM_FOR_FILES: u32 = 4;

/// File data stays away from a hint that it cannot begin at by its length divided by this. With 2,
/// files were farther from their inodes on clean volumes of 500 GiB than in near mode; without the
/// rule as few files as in near mode were within 1 MiB on volumes with many free extents.
const LEFT_TO_OTHERS: u32 = 4;

/// The search, with the indexes of the groups that it was used in.
#[derive(Debug, Default)]
pub(super) struct Indexed {
    /// Taken out while a group, which is locked, is searched.
    groups: Mutex<HashMap<AgNumber, Box<FreeIndex>>>,
}

impl NearSearch for Indexed {
    fn find(&self, steps: &mut dyn NearSteps) -> Result<(), Error> {
        let group = steps.group();
        let known = self.groups.lock().remove(&group);
        let index = match known {
            Some(index) => index,
            None => {
                let extents = steps.free_extents()?;
                Box::new(FreeIndex::of(steps.group_blocks(), &extents))
            }
        };
        search(steps, &index);
        self.groups.lock().insert(group, index);
        // Nothing usable among the nearest: the search that sees everything.
        if steps.best().is_none() && !steps.longest_first(true)? {
            steps.combined()?;
        }
        Ok(())
    }

    fn stays_in_group(&self) -> bool {
        true
    }

    fn replaced(&self, group: AgNumber, old: &[AllocRecord], new: &[AllocRecord]) {
        if let Some(index) = self.groups.lock().get_mut(&group) {
            index.replace(old, new.iter().copied());
        }
    }
}

/// Tries what is nearest by the index.
fn search(steps: &mut dyn NearSteps, index: &FreeIndex) {
    let wanted = steps.max_len().min(index.max());
    let request = steps.request();
    if wanted < request.min_len {
        return;
    }
    if request.owner == Some(RmapOwner::INODES) {
        let roomy = wanted.max(index.max() / ROOM_FOR_FILES);
        nearest(steps, index, roomy, 0);
    } else if request.user_data && !index.is_free(steps.hint(), wanted) {
        nearest(steps, index, wanted, wanted / LEFT_TO_OTHERS);
    }
    if steps.best().is_none() {
        nearest(steps, index, wanted, 0);
    }
}

/// Tries the nearest extents of at least `wanted` blocks on both sides of the hint that do not begin
/// within `room` blocks of it.
fn nearest(steps: &mut dyn NearSteps, index: &FreeIndex, wanted: u32, room: u32) {
    if let Some(last) = steps.hint().0.checked_sub(room) {
        left(steps, index, wanted, AgBlock(last.saturating_add(1)));
        if is_at_hint(steps, wanted) {
            return;
        }
    }
    let first = steps.hint().0.saturating_add(room).saturating_add(1);
    right(steps, index, wanted, AgBlock(first));
}

/// Tries extents of at least `wanted` blocks that begin before `bound`, from there to the left.
fn left(steps: &mut dyn NearSteps, index: &FreeIndex, wanted: u32, mut bound: AgBlock) {
    for _ in 0..PROBES {
        let Some(extent) = index.last_before(bound, wanted) else { return };
        if steps.consider(extent) {
            return;
        }
        bound = extent.start;
    }
    if let Some(extent) = index.last_before(bound, certain(steps, wanted)) {
        steps.consider(extent);
    }
}

/// Tries extents of at least `wanted` blocks that begin at `bound` or to the right of it.
fn right(steps: &mut dyn NearSteps, index: &FreeIndex, wanted: u32, mut bound: AgBlock) {
    for _ in 0..PROBES {
        let Some(extent) = index.first_from(bound, wanted) else { return };
        if steps.consider(extent) || is_farther(steps, extent) {
            return;
        }
        bound = AgBlock(extent.start.0 + 1);
    }
    if let Some(extent) = index.first_from(bound, certain(steps, wanted)) {
        steps.consider(extent);
    }
}

/// Whether the best so far begins at the hint and has `len` blocks: nothing is nearer.
fn is_at_hint(steps: &dyn NearSteps, len: u32) -> bool {
    steps.best().is_some_and(|best| best.start == steps.hint() && best.len >= len)
}

/// The length at which an extent fits however it lies.
fn certain(steps: &dyn NearSteps, wanted: u32) -> u32 {
    wanted.saturating_add(steps.request().alignment - 1)
}

/// Whether everything from `extent` on is farther than the best so far.
fn is_farther(steps: &dyn NearSteps, extent: AllocRecord) -> bool {
    steps.best().is_some_and(|best| {
        extent.start.0.abs_diff(steps.hint().0) > best.start.0.abs_diff(steps.hint().0)
    })
}

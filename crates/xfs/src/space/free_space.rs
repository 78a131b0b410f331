//! Free space of the whole volume, as far as it may be used.
//!
//! The groups' free blocks and free lists, without what is reserved in them
//! (docs/algorithms/reserved-space.md#reservations-of-groups and
//! docs/algorithms/reserved-space.md#set-asides). A transaction reserves from it before it changes
//! anything, so that it does not run out of space half-way.

use crossbeam_utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

/// Blocks per group that may not be reserved: four to fill the free list again, four for a split of
/// a mapping tree.
const SET_ASIDE: i64 = 8;

/// The counter. Groups add their free blocks when they are first read, and changes when a
/// transaction commits.
#[derive(Debug)]
pub(crate) struct FreeSpace {
    blocks: AtomicI64,
    /// All groups have been added.
    complete: AtomicBool,
    set_aside: i64,
    /// Groups with a room ahead of data (`alloc/room`).
    rooms: AtomicI32,
}

impl FreeSpace {
    pub(crate) fn new(groups: u32) -> Self {
        Self {
            blocks: AtomicI64::new(0),
            complete: AtomicBool::new(false),
            set_aside: SET_ASIDE * i64::from(groups),
            rooms: AtomicI32::new(0),
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    pub(crate) fn set_complete(&self) {
        self.complete.store(true, Ordering::Release);
    }

    pub(crate) fn add(&self, delta: i64) {
        self.blocks.fetch_add(delta, Ordering::AcqRel);
    }

    /// Blocks that can still be reserved.
    pub(crate) fn available(&self) -> u64 {
        let blocks = self.blocks.load(Ordering::Acquire) - self.set_aside;
        u64::try_from(blocks).unwrap_or(0)
    }

    /// Counts a room that was opened (1) or given back (-1), with the group locked.
    pub(crate) fn count_room(&self, change: i32) {
        self.rooms.fetch_add(change, Ordering::Relaxed);
    }

    /// Whether there are blocks in rooms.
    pub(crate) fn has_rooms(&self) -> bool {
        self.rooms.load(Ordering::Relaxed) > 0
    }

    /// Takes `blocks` out of the counter; `false` if there are not as many.
    #[must_use]
    pub(crate) fn reserve(&self, blocks: u64) -> bool {
        self.take(blocks, self.set_aside)
    }

    /// As [`reserve`](Self::reserve), of the blocks set aside too: for what frees space.
    #[must_use]
    pub(crate) fn reserve_set_aside(&self, blocks: u64) -> bool {
        self.take(blocks, 0)
    }

    fn take(&self, blocks: u64, least: i64) -> bool {
        let Ok(wanted) = i64::try_from(blocks) else { return false };
        let take = |now: i64| (now - least >= wanted).then(|| now - wanted);
        self.blocks.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
    }
}

/// Blocks taken out of the counter for work to come. What of them is not [taken](Self::take) goes
/// back when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    /// Where it is from; `None` as long as nothing was reserved.
    space: Option<Arc<CachePadded<FreeSpace>>>,
    blocks: u64,
}

impl Reservation {
    /// Takes `blocks` out of the counter, if there are as many.
    pub(crate) fn of(space: &Arc<CachePadded<FreeSpace>>, blocks: u64) -> Option<Self> {
        space.reserve(blocks).then(|| Self { space: Some(Arc::clone(space)), blocks })
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Adds another one of the same volume.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.blocks += std::mem::take(&mut other.blocks);
        self.space = self.space.take().or_else(|| other.space.take());
    }

    /// Hands over up to `blocks` blocks, which the caller gives back; returns their number.
    pub(crate) fn take(&mut self, blocks: u64) -> u64 {
        let taken = blocks.min(self.blocks);
        self.blocks -= taken;
        taken
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(space) = self.space.as_ref().filter(|_| self.blocks > 0) {
            space.add(i64::try_from(self.blocks).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_blocks_of_each_group_are_not_given_out() {
        let space = FreeSpace::new(2);
        assert!(!space.reserve(1));
        space.add(10);
        space.add(16);
        assert_eq!(space.available(), 10);
        assert!(!space.reserve(11));
        assert!(space.reserve(10));
        assert!(!space.reserve(1));
        space.add(1);
        assert!(space.reserve(1));
        assert!(!space.reserve(u64::MAX));
        assert!(space.reserve_set_aside(16));
        assert!(!space.reserve_set_aside(1));
    }

    #[test]
    fn a_reservation_goes_back_but_for_what_was_taken() {
        let space = Arc::new(CachePadded::new(FreeSpace::new(0)));
        space.add(10);
        let mut reservation = Reservation::of(&space, 6).unwrap();
        reservation.join(Reservation::of(&space, 3).unwrap());
        assert!(Reservation::of(&space, 2).is_none());
        assert_eq!((reservation.take(4), reservation.take(9)), (4, 5));
        reservation.join(Reservation::of(&space, 1).unwrap());
        drop(reservation);
        assert_eq!(space.available(), 1);
    }
}

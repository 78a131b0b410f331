//! Which legs are in use, and which of them reads next.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::bio::BlockError;
use crate::units::Sector;

/// A read that goes on where another one on a leg ended may find the leg with this many bytes more
/// of work than the idlest one has.
const SEQUENTIAL_BONUS: u64 = 1 << 20;

/// Whether a leg of a mirror is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegState {
    /// Read and written.
    Live,
    /// Written, and being filled with the data of the others; not read.
    Resynchronising,
    /// Neither read nor written: it does not hold the data of the others.
    Stale,
}

/// The state of one leg of a mirror.
#[derive(Clone, Debug)]
pub struct LegStatus {
    /// Whether it is used.
    pub state: LegState,
    /// Why it was dropped last, if it was.
    pub error: Option<BlockError>,
    /// Reads that it failed.
    pub read_errors: u64,
}

/// A set of legs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LegSet(u32);

impl LegSet {
    pub(super) fn of(leg: usize) -> Self {
        Self(1 << leg)
    }

    pub(super) fn contains(self, leg: usize) -> bool {
        self.0 & (1 << leg) != 0
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..32).filter(move |&leg| self.contains(leg))
    }
}

/// All legs of a mirror.
pub(super) struct Members {
    /// The sets of legs that are read, in the lower half, and written, in the upper half: changed
    /// under the lock of `details`, read by every bio.
    sets: AtomicU64,
    details: Mutex<Vec<Detail>>,
    loads: Box<[Load]>,
}

#[derive(Clone)]
struct Detail {
    state: LegState,
    error: Option<BlockError>,
}

/// The state of a leg.
#[derive(Default)]
struct Load {
    /// Bytes of reads in flight.
    reading: AtomicU64,
    /// The sector behind the last read.
    position: AtomicU64,
    read_errors: AtomicU64,
}

impl Members {
    /// `count` legs, some of them stale; `None` if all are.
    pub(super) fn new(count: usize, stale: &[usize]) -> Option<Self> {
        let state = |leg| if stale.contains(&leg) { LegState::Stale } else { LegState::Live };
        let details = (0..count).map(|leg| Detail { state: state(leg), error: None });
        let members = Self {
            sets: AtomicU64::new(0),
            details: Mutex::new(details.collect()),
            loads: (0..count).map(|_| Load::default()).collect(),
        };
        members.publish(&members.details.lock());
        (!members.live().is_empty()).then_some(members)
    }

    fn publish(&self, details: &[Detail]) {
        let set = |used: fn(LegState) -> bool| {
            let legs = (0..details.len()).filter(|&leg| used(details[leg].state));
            legs.map(LegSet::of).fold(LegSet::default(), LegSet::union)
        };
        let live = set(|state| state == LegState::Live);
        let written = set(|state| state != LegState::Stale);
        // Release: a thread that sees the sets sees what led to them, and acts after it.
        self.sets.store(u64::from(live.0) | u64::from(written.0) << 32, Ordering::Release);
    }

    /// Legs that can be read.
    pub(super) fn live(&self) -> LegSet {
        // The lower half.
        LegSet(self.sets.load(Ordering::Acquire) as u32)
    }

    /// Legs that are written.
    pub(super) fn written(&self) -> LegSet {
        LegSet((self.sets.load(Ordering::Acquire) >> 32) as u32)
    }

    /// Of `legs`, where a read of `sector` is done soonest.
    pub(super) fn choose(&self, legs: LegSet, sector: Sector) -> Option<usize> {
        let cost = |leg: usize| {
            let load = &self.loads[leg];
            let position = load.position.load(Ordering::Relaxed);
            let work = load.reading.load(Ordering::Relaxed);
            let distance = position.abs_diff(sector.0);
            let bonus = if distance == 0 { SEQUENTIAL_BONUS } else { 0 };
            (work.saturating_sub(bonus), distance != 0, work, distance)
        };
        if legs.len() == 1 { legs.iter().next() } else { legs.iter().min_by_key(|&leg| cost(leg)) }
    }

    /// Counts a read of `length` bytes that ends before `end` as work of `leg`.
    pub(super) fn read_started(&self, leg: usize, length: u64, end: Sector) {
        let load = &self.loads[leg];
        load.reading.fetch_add(length, Ordering::Relaxed);
        load.position.store(end.0, Ordering::Relaxed);
    }

    /// Counts it as done.
    pub(super) fn read_ended(&self, leg: usize, length: u64, succeeded: bool) {
        let load = &self.loads[leg];
        load.reading.fetch_sub(length, Ordering::Relaxed);
        load.read_errors.fetch_add(u64::from(!succeeded), Ordering::Relaxed);
    }

    /// Stops using `leg`, unless it is the last one that can be read. Returns whether it was used.
    pub(super) fn drop_leg(&self, leg: usize, error: &BlockError) -> bool {
        let mut details = self.details.lock();
        let last = self.live() == LegSet::of(leg);
        if last || details[leg].state == LegState::Stale {
            return false;
        }
        details[leg] = Detail { state: LegState::Stale, error: Some(error.clone()) };
        self.publish(&details);
        true
    }

    /// Changes the state of `leg` from `before` to `after`. Returns whether it was as expected.
    pub(super) fn change(&self, leg: usize, before: LegState, after: LegState) -> bool {
        let mut details = self.details.lock();
        let expected = details[leg].state == before;
        if expected {
            details[leg].state = after;
            self.publish(&details);
        }
        expected
    }

    pub(super) fn state(&self, leg: usize) -> Option<LegState> {
        self.details.lock().get(leg).map(|detail| detail.state)
    }

    pub(super) fn status(&self) -> Vec<LegStatus> {
        let details = self.details.lock();
        let status = details.iter().zip(&self.loads).map(|(Detail { state, error }, load)| {
            let read_errors = load.read_errors.load(Ordering::Relaxed);
            LegStatus { state: *state, error: error.clone(), read_errors }
        });
        status.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::FailedBio;

    #[test]
    fn reads_go_where_there_is_least_to_do_or_on() {
        let members = Members::new(3, &[]).unwrap();
        let all = members.live();
        assert_eq!(all.iter().collect::<Vec<_>>(), [0, 1, 2]);
        members.read_started(0, 4096, Sector(8));
        members.read_started(1, 512, Sector(100));
        assert_eq!(members.choose(all, Sector(50)), Some(2), "the idle one");
        assert_eq!(members.choose(all, Sector(8)), Some(0), "where a read ended");
        members.read_started(0, SEQUENTIAL_BONUS, Sector(2056));
        assert_eq!(members.choose(all, Sector(2056)), Some(2), "too much to do there");
        let rest = all.without(LegSet::of(2));
        assert_eq!(members.choose(rest, Sector(50)), Some(1));
        members.read_ended(1, 512, true);
        members.read_ended(0, 4096 + SEQUENTIAL_BONUS, true);
        assert_eq!(members.choose(all, Sector(90)), Some(1), "the nearest");
        assert_eq!(members.choose(LegSet::default(), Sector(0)), None);
    }

    #[test]
    fn the_last_leg_stays() {
        let error = BlockError::new(FailedBio {
            device: "leg".into(),
            operation: crate::Operation::Write,
            sector: Sector(0),
            length: 512,
            reason: crate::Reason::ReadOnly,
        });
        let members = Members::new(3, &[1]).unwrap();
        assert_eq!((members.live().len(), members.written().len()), (2, 2));
        assert!(members.change(1, LegState::Stale, LegState::Resynchronising));
        assert_eq!((members.live().len(), members.written().len()), (2, 3));
        assert!(members.drop_leg(0, &error));
        assert!(!members.drop_leg(0, &error), "once");
        assert!(!members.drop_leg(2, &error), "the last");
        assert!(members.drop_leg(1, &error), "one that is not complete can go");
        assert_eq!(members.status()[0].state, LegState::Stale);
        assert!(Members::new(2, &[0, 1]).is_none());
    }
}

//! What happened so far.

use std::iter::Sum;
use std::ops::Add;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

use crate::sync::Tally;

/// Sums over all callers and wait queues since the set was made. Each is counted where it happens,
/// by one writer at a time, and summed here: a sum taken while the set is in use is of no single
/// moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Tags got.
    pub gets: u64,
    /// Tags put: those got less those in use.
    pub puts: u64,
    /// Times that a waiter saw every tag busy and went to sleep; for tasks and callbacks, times they
    /// began to wait or waited on.
    pub sleeps: u64,
    /// Wake-ups given to waiters.
    pub wakes_granted: u64,
    /// Wake-ups after which the waiter got a tag.
    pub wakes_used: u64,
    /// Wake-ups of waiters that had no use for them, given to another waiter; that counts as
    /// granted, too.
    pub wakes_passed_on: u64,
}

impl Statistics {
    pub(crate) fn new(callers: CallerSums, in_use: u32, waits: WaitCounts) -> Self {
        Self {
            gets: callers.gets,
            puts: callers.gets.saturating_sub(u64::from(in_use)),
            sleeps: callers.sleeps,
            wakes_granted: waits.granted,
            wakes_used: callers.wakes_used,
            wakes_passed_on: waits.passed_on,
        }
    }
}

/// Counts of one wait queue, kept under its lock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WaitCounts {
    pub(crate) granted: u64,
    pub(crate) passed_on: u64,
}

impl Add for WaitCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { granted: self.granted + other.granted, passed_on: self.passed_on + other.passed_on }
    }
}

impl Sum for WaitCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Self::add)
    }
}

/// The counts of one caller. Only the caller writes, so a plain load and store is enough.
#[derive(Debug, Default)]
pub(crate) struct CallerCounts {
    pub(crate) gets: Tally,
    pub(crate) sleeps: Tally,
    pub(crate) wakes_used: Tally,
}

/// A caller's counts, on a cache line of their own.
pub(crate) type Counts = Arc<CachePadded<CallerCounts>>;

/// Sums over callers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallerSums {
    gets: u64,
    sleeps: u64,
    wakes_used: u64,
}

impl CallerSums {
    fn add(&mut self, counts: &CallerCounts) {
        self.gets += counts.gets.get();
        self.sleeps += counts.sleeps.get();
        self.wakes_used += counts.wakes_used.get();
    }
}

/// The counts of all callers of a set.
#[derive(Debug, Default)]
pub(crate) struct Register(Mutex<Callers>);

#[derive(Debug, Default)]
struct Callers {
    present: Vec<Counts>,
    /// Sums over callers that are gone.
    gone: CallerSums,
    /// Callers ever made.
    made: u32,
}

impl Register {
    /// Counts for a new caller, and how many callers were made before it.
    pub(crate) fn enter(&self) -> (Counts, u32) {
        let mut callers = self.0.lock();
        let counts = Counts::default();
        callers.present.push(Arc::clone(&counts));
        let before = callers.made;
        callers.made = before.wrapping_add(1);
        (counts, before)
    }

    /// A caller is dropped; its counts stay in the sums.
    pub(crate) fn leave(&self, counts: &Counts) {
        let mut callers = self.0.lock();
        callers.gone.add(counts);
        callers.present.retain(|other| !Arc::ptr_eq(other, counts));
    }

    pub(crate) fn sums(&self) -> CallerSums {
        let callers = self.0.lock();
        let mut sums = callers.gone;
        for counts in &callers.present {
            sums.add(counts);
        }
        sums
    }
}

//! The order of requests that overlap: for all hardware queues of a leaf, or for the legs of a
//! stacked device that must agree.
//!
//! Two requests conflict when they share a sector and one of them modifies. A request that
//! conflicts with one in flight, or with an older one that is held back itself, is held back until
//! those are finished. A flush is held back until everything that modifies and was submitted before
//! it is finished; it holds back nothing. Conflicts are rare (a file system does not write a block
//! while it is being written), so what matters is that requests without one pass quickly: those in
//! flight are sorted by sector, and none is longer than the longest so far.

use std::collections::VecDeque;
use std::ops::Range;

use crate::bio::Operation;
use crate::units::{Sector, overlap};

/// Items kept in order: requests of a leaf, bios of a stacked device.
pub(crate) trait Ordered {
    /// Its operation.
    fn operation(&self) -> Operation;

    /// The sectors that it touches; none for a flush.
    fn sectors(&self) -> Range<Sector>;

    /// The number that it got when it entered.
    fn number(&self) -> u64;

    /// Records the number.
    fn set_number(&mut self, number: u64);
}

/// Requests in flight and held back. A number given to each request when it enters tells which
/// came first.
#[derive(Debug)]
pub(crate) struct OverlapTracker<T> {
    /// Number of the last request that entered.
    last: u64,
    /// In flight, by first sector. Flushes are not in it.
    running: Vec<Running>,
    /// Bound of the length of every request in `running`, in sectors.
    longest: u64,
    /// How many of `running` modify.
    modifying: usize,
    /// Oldest first.
    held: VecDeque<T>,
}

impl<T> Default for OverlapTracker<T> {
    fn default() -> Self {
        let (running, held) = (Vec::new(), VecDeque::new());
        Self { last: 0, running, longest: 0, modifying: 0, held }
    }
}

/// What a request in flight excludes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Running {
    sectors: Range<Sector>,
    modifies: bool,
    number: u64,
}

impl Running {
    fn of(request: &impl Ordered) -> Self {
        Self {
            sectors: request.sectors(),
            modifies: request.operation().modifies(),
            number: request.number(),
        }
    }

    fn conflicts_with(&self, other: &Self) -> bool {
        (self.modifies || other.modifies) && overlap(&self.sectors, &other.sectors)
    }
}

impl<T: Ordered> OverlapTracker<T> {
    /// Gives the request back if it may start now, else keeps it.
    pub(crate) fn enter(&mut self, mut request: T) -> Option<T> {
        if self.may_start(&mut request) {
            return Some(request);
        }
        self.hold(request);
        None
    }

    /// Gives `request` its number and says whether it may start now; if not, it must be given to
    /// [`hold`](Self::hold) before the next one enters.
    pub(crate) fn may_start(&mut self, request: &mut T) -> bool {
        self.last += 1;
        request.set_number(self.last);
        let free = self.is_free(request, self.held.len());
        if free {
            self.start(request);
        }
        free
    }

    /// Keeps a request that may not start yet.
    pub(crate) fn hold(&mut self, request: T) {
        self.held.push_back(request);
    }

    /// Records that a request which entered is finished, and puts the requests that it held back,
    /// if they may start now, into `released`.
    pub(crate) fn leave(&mut self, request: &impl Ordered, released: &mut Vec<T>) {
        if request.operation() != Operation::Flush {
            self.finish(request);
        }
        self.release(released);
    }

    /// Takes out requests held back that `is_unwanted` knows, and puts those that they held back,
    /// if they may start now, into `released`.
    pub(crate) fn withdraw(
        &mut self,
        mut is_unwanted: impl FnMut(&T) -> bool,
        withdrawn: &mut Vec<T>,
        released: &mut Vec<T>,
    ) {
        let held = std::mem::take(&mut self.held);
        for request in held {
            match is_unwanted(&request) {
                true => withdrawn.push(request),
                false => self.held.push_back(request),
            }
        }
        if !withdrawn.is_empty() {
            self.release(released);
        }
    }

    /// Starts those held back that may start now.
    fn release(&mut self, released: &mut Vec<T>) {
        if self.held.is_empty() {
            return;
        }
        let mut index = 0;
        while index < self.held.len() {
            if self.is_free(&self.held[index], index)
                && let Some(request) = self.held.remove(index)
            {
                self.start(&request);
                released.push(request);
            } else {
                index += 1;
            }
        }
    }

    /// The number that the next request gets.
    pub(crate) fn next_number(&self) -> u64 {
        self.last + 1
    }

    /// Whether any is held back.
    pub(crate) fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether none is in flight or held back.
    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.held.is_empty()
    }

    /// Whether `request` conflicts neither with one in flight nor with one of the first `older`
    /// held back.
    fn is_free(&self, request: &T, older: usize) -> bool {
        let held = || self.held.iter().take(older);
        if request.operation() == Operation::Flush {
            let running = self.modifying > 0
                && self.running.iter().any(|one| one.modifies && one.number < request.number());
            return !running && !held().any(|other| other.operation().modifies());
        }
        let this = Running::of(request);
        !self.overlapping(&this.sectors).any(|other| other.conflicts_with(&this))
            && !held().any(|other| {
                other.operation() != Operation::Flush && Running::of(other).conflicts_with(&this)
            })
    }

    /// Those in flight that could share a sector with `sectors`.
    fn overlapping(&self, sectors: &Range<Sector>) -> impl Iterator<Item = &Running> {
        let first = Sector(sectors.start.0.saturating_sub(self.longest));
        let from = self.running.partition_point(|one| one.sectors.start < first);
        self.running[from..].iter().take_while(move |one| one.sectors.start < sectors.end)
    }

    fn start(&mut self, request: &T) {
        if request.operation() == Operation::Flush {
            return;
        }
        let this = Running::of(request);
        self.longest = self.longest.max(this.sectors.end.0 - this.sectors.start.0);
        self.modifying += usize::from(this.modifies);
        let key = (this.sectors.start, this.number);
        let index = self.running.partition_point(|one| (one.sectors.start, one.number) < key);
        self.running.insert(index, this);
    }

    fn finish(&mut self, request: &impl Ordered) {
        let key = (request.sectors().start, request.number());
        let found = self.running.binary_search_by_key(&key, |one| (one.sectors.start, one.number));
        debug_assert!(found.is_ok(), "a request finished that is not in flight: {key:?}");
        if let Ok(index) = found {
            let finished = self.running.remove(index);
            self.modifying -= usize::from(finished.modifies);
        }
        if self.running.is_empty() {
            self.longest = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bio::Bio;
    use crate::memory::Buffer;
    use crate::request::Request;

    fn write(sector: u64) -> Bio {
        Bio::write(Sector(sector), Buffer::zeroed(1024))
    }

    fn read(sector: u64) -> Bio {
        Bio::read(Sector(sector), Buffer::zeroed(1024))
    }

    fn sectors(requests: &[Request]) -> Vec<u64> {
        requests.iter().map(|request| request.sector().0).collect()
    }

    /// Lets `bios` in; returns those that may start at once.
    fn enter(
        tracker: &mut OverlapTracker<Request>,
        bios: impl IntoIterator<Item = Bio>,
    ) -> Vec<Request> {
        bios.into_iter().filter_map(|bio| tracker.enter(Request::new(bio))).collect()
    }

    /// Finishes `request`; returns those that it held back.
    fn leave(tracker: &mut OverlapTracker<Request>, request: Request) -> Vec<Request> {
        let mut released = Vec::new();
        tracker.leave(&request, &mut released);
        request.complete();
        released
    }

    #[test]
    fn overlapping_requests_wait_for_older_ones_and_others_pass() {
        let tracker = &mut OverlapTracker::default();
        let bios = [write(0), write(1), read(2), write(8), read(8), read(20)];
        let mut first = enter(tracker, bios);
        // The read at 2 waits for the write at 1, which only waits itself.
        assert_eq!(sectors(&first), [0, 8, 20]);
        let mut second = leave(tracker, first.remove(0));
        assert_eq!(sectors(&second), [1]);
        let third = leave(tracker, second.remove(0));
        assert_eq!(sectors(&third), [2]);
        let fourth = leave(tracker, first.remove(0));
        assert_eq!(sectors(&fourth), [8]);
        first.into_iter().chain(third).chain(fourth).for_each(|request| {
            assert!(leave(tracker, request).is_empty());
        });
        assert_eq!((tracker.running.len(), tracker.modifying, tracker.longest), (0, 0, 0));
    }

    #[test]
    fn reads_share_sectors() {
        let tracker = &mut OverlapTracker::default();
        let started = enter(tracker, [read(0), read(0), read(1)]);
        assert_eq!(sectors(&started), [0, 0, 1]);
        started.into_iter().for_each(|request| drop(leave(tracker, request)));
    }

    #[test]
    fn a_long_request_is_found_from_far_behind_its_start() {
        let tracker = &mut OverlapTracker::default();
        let long = Bio::write_zeroes(Sector(0), 1 << 30);
        let mut started = enter(tracker, [long, write(5 << 20), write(1 << 20)]);
        assert_eq!(sectors(&started), [0, 5 << 20]);
        let released = leave(tracker, started.remove(0));
        assert_eq!(sectors(&released), [1 << 20]);
        started.into_iter().chain(released).for_each(|request| drop(leave(tracker, request)));
    }

    #[test]
    fn a_flush_waits_for_the_writes_before_it_and_holds_nothing() {
        let tracker = &mut OverlapTracker::default();
        let mut started = enter(tracker, [write(4), read(8), Bio::flush(), write(12), write(5)]);
        assert_eq!(sectors(&started), [4, 8, 12]);
        let released = leave(tracker, started.remove(0));
        // The later write at 12 is in flight, and that at 5 starts; neither concerns the flush.
        assert_eq!(sectors(&released), [0, 5]);
        started.into_iter().chain(released).for_each(|request| drop(leave(tracker, request)));
    }

    #[test]
    fn a_flush_waits_for_a_write_that_is_held_back_itself() {
        let tracker = &mut OverlapTracker::default();
        let mut started = enter(tracker, [read(0), write(0), Bio::flush()]);
        assert_eq!(sectors(&started), [0]);
        let mut released = leave(tracker, started.remove(0));
        assert_eq!((sectors(&released), released[0].operation()), (vec![0], Operation::Write));
        let flush = leave(tracker, released.remove(0));
        assert_eq!(flush[0].operation(), Operation::Flush);
        flush.into_iter().for_each(|request| drop(leave(tracker, request)));
    }
}

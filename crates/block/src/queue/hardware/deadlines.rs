//! The time limits of the requests of one hardware queue.
//!
//! Where requests have a time limit, the receivers of their bios do not travel with them. They stay
//! here, and the request goes to the driver with its memory alone. The first of two gives the
//! answer: the driver, when it ends the request, or the limit. After the limit the request is
//! *timed out*: the driver keeps its tag and its memory until it lets go of it, and its result is
//! ignored.
//!
//! A request that waits, for a tag or for others that overlap, has no limit as long as the driver
//! keeps to it: it waits for requests that end. While any request of the leaf has timed out, those that
//! wait have the same limit, from their submission on, since they may wait for one that never ends.
//! Those answered that way are *withdrawn*: never started, and dropped where they wait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use smallvec::SmallVec;
use undercroft_tags::Tag;

use super::watchdog_wait::WatchdogWait;
use crate::bio::{Bio, Reason};
use crate::driver::Completions;
use crate::request::{Receivers, Request, RequestList};
use crate::threads::clock;

/// The deadlines of one hardware queue.
pub(crate) struct Deadlines {
    /// In nanoseconds.
    limit: u64,
    state: Mutex<State>,
    /// Requests that timed out and were not let go; changed under the lock.
    timed_out: AtomicUsize,
    /// Requests that are withdrawn and were not dropped; changed under the lock.
    withdrawn: AtomicUsize,
    /// Requests that timed out so far; changed under the lock.
    news: AtomicU64,
    watchdog_wait: Arc<WatchdogWait>,
}

#[derive(Default)]
struct State {
    /// Requests know the number of their slot.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// When requests were started, and their slots: in the order of their limits. An entry counts
    /// as long as its request is in flight since that time.
    started: VecDeque<(u64, u32)>,
}

struct Slot {
    phase: Phase,
    receivers: Receivers,
    submitted: u64,
}

/// How far a request has come. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is none.
    Free,
    /// Not started.
    Waiting,
    /// In the driver since that time, with that tag if it has one.
    Started { at: u64, tag: Option<u32> },
    /// Answered at its limit, in the driver; `news` counts those before it.
    TimedOut { tag: Option<u32>, news: u64 },
    /// Answered at its limit, not started.
    Withdrawn,
}

/// A request whose limit has passed: to be answered.
pub(crate) struct Expired {
    receivers: Receivers,
    /// When it was submitted.
    pub(crate) submitted: u64,
}

impl Expired {
    /// The bios, to be failed. They have no memory: it is with the request.
    pub(crate) fn into_bios(self) -> impl Iterator<Item = Bio> {
        self.receivers.into_iter()
    }

    /// Any of the bios: all do the same.
    pub(crate) fn bio(&self) -> Option<&Bio> {
        self.receivers.first()
    }
}

impl Deadlines {
    pub(crate) fn new(limit: Duration, watchdog_wait: &Arc<WatchdogWait>) -> Self {
        Self {
            limit: u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX),
            state: Mutex::default(),
            timed_out: AtomicUsize::new(0),
            withdrawn: AtomicUsize::new(0),
            news: AtomicU64::new(0),
            watchdog_wait: Arc::clone(watchdog_wait),
        }
    }

    /// Keeps the receivers of `requests`, which were just submitted.
    pub(crate) fn make(&self, requests: &mut RequestList) {
        let mut state = self.state.lock();
        for request in requests.iter_mut() {
            let slot = Slot {
                phase: Phase::Waiting,
                receivers: request.take_receivers(),
                submitted: request.inner.submitted,
            };
            request.inner.deadline = state.put(slot);
        }
        drop(state);
        self.watchdog_wait.tell();
    }

    /// Records that `requests` go to the driver now.
    pub(crate) fn start<'r>(&self, requests: impl Iterator<Item = &'r Request>) {
        let at = clock::nanoseconds();
        let mut state = self.state.lock();
        for request in requests {
            let number = request.inner.deadline;
            let slot = &mut state.slots[number as usize];
            let tag = request.inner.tag.map(Tag::number);
            if slot.phase == Phase::Withdrawn {
                // Since it was last looked at; it is sent all the same.
                self.withdrawn.fetch_sub(1, Ordering::Relaxed);
                slot.phase = self.count_timed_out(tag);
                continue;
            }
            slot.phase = Phase::Started { at, tag };
            state.started.push_back((at, number));
        }
        drop(state);
        self.watchdog_wait.tell();
    }

    /// Records that the driver gave `request` back untouched.
    pub(crate) fn wait_again(&self, request: &Request) {
        let slot = &mut self.state.lock().slots[request.inner.deadline as usize];
        if let Phase::Started { .. } = slot.phase {
            slot.phase = Phase::Waiting;
        }
    }

    /// Gives the requests of `ended` their receivers back, and takes out requests that were
    /// answered before.
    pub(crate) fn end(&self, ended: &mut Vec<Request>) -> Vec<Request> {
        let mut state = self.state.lock();
        let is_answered = |request: &mut Request| {
            let slot = state.take(request.inner.deadline);
            match slot.phase {
                Phase::TimedOut { .. } => self.timed_out.fetch_sub(1, Ordering::Relaxed),
                Phase::Withdrawn => self.withdrawn.fetch_sub(1, Ordering::Relaxed),
                Phase::Free | Phase::Waiting | Phase::Started { .. } => {
                    request.give_receivers(slot.receivers);
                    return false;
                }
            };
            true
        };
        ended.extract_if(.., is_answered).collect()
    }

    /// Whether `request` was answered at its limit.
    pub(crate) fn is_answered(&self, request: &Request) -> bool {
        let phase = self.state.lock().slots[request.inner.deadline as usize].phase;
        matches!(phase, Phase::TimedOut { .. } | Phase::Withdrawn)
    }

    /// Moves requests that were answered from `waiting` to `completions`, to be dropped.
    pub(crate) fn sort_out(&self, waiting: &mut RequestList, completions: &mut Completions) {
        let is_none = |count: &AtomicUsize| count.load(Ordering::Relaxed) == 0;
        if waiting.is_empty() || (is_none(&self.withdrawn) && is_none(&self.timed_out)) {
            return;
        }
        let out = |request| completions.push(request, Err(Reason::TimedOut.into()));
        waiting.keep(|request| !self.is_answered(request), out);
    }

    /// Requests that were answered at their limit and that the driver has not let go.
    pub(crate) fn timed_out(&self) -> usize {
        self.timed_out.load(Ordering::Relaxed)
    }

    /// Whether a request waits that was answered at its limit.
    pub(crate) fn has_withdrawn(&self) -> bool {
        // The lock puts this in order with a thread that withdraws, and looks for them afterwards.
        let _state = self.state.lock();
        self.withdrawn.load(Ordering::Relaxed) > 0
    }

    /// Whether more requests timed out so far than `seen`.
    pub(crate) fn has_timed_out_since(&self, seen: u64) -> bool {
        self.news.load(Ordering::Acquire) != seen
    }

    /// The tags of the requests that timed out beyond the first `seen`, which counts all afterwards.
    pub(crate) fn timed_out_since(&self, seen: &mut u64) -> SmallVec<[u32; 8]> {
        let known = *seen;
        if !self.has_timed_out_since(known) {
            return SmallVec::new();
        }
        let state = self.state.lock();
        *seen = self.news.load(Ordering::Relaxed);
        let timed_out = state.slots.iter().filter_map(|slot| match slot.phase {
            Phase::TimedOut { tag, news } if news >= known => tag,
            _ => None,
        });
        timed_out.collect()
    }

    /// Takes the receivers of requests that have been in the driver for the time of the limit.
    pub(crate) fn expire_started(&self, now: u64) -> Vec<Expired> {
        let mut state = self.state.lock();
        let mut expired = Vec::new();
        while let Some((at, number)) = state.first_started()
            && at.saturating_add(self.limit) <= now
        {
            state.started.pop_front();
            let slot = &mut state.slots[number as usize];
            if let Phase::Started { tag, .. } = slot.phase {
                slot.phase = self.count_timed_out(tag);
                expired.push(slot.expire());
            }
        }
        expired
    }

    /// Counts one more request that timed out; called under the lock.
    fn count_timed_out(&self, tag: Option<u32>) -> Phase {
        self.timed_out.fetch_add(1, Ordering::Relaxed);
        Phase::TimedOut { tag, news: self.news.fetch_add(1, Ordering::Release) }
    }

    /// Takes the receivers of requests that wait since the time of the limit.
    pub(crate) fn expire_waiting(&self, now: u64) -> Vec<Expired> {
        let mut expired = Vec::new();
        for slot in &mut self.state.lock().slots {
            if slot.phase == Phase::Waiting && slot.submitted.saturating_add(self.limit) <= now {
                slot.phase = Phase::Withdrawn;
                expired.push(slot.expire());
                self.withdrawn.fetch_add(1, Ordering::Relaxed);
            }
        }
        expired
    }

    /// When the next limit passes; that of waiting requests only if they have one.
    pub(crate) fn next(&self, limits_waiting: bool) -> Option<u64> {
        let mut state = self.state.lock();
        let started = state.first_started().map(|(at, _)| at);
        let slots = if limits_waiting { &state.slots[..] } else { &[] };
        let waiting = slots.iter().filter(|slot| slot.phase == Phase::Waiting);
        let first = waiting.map(|slot| slot.submitted).chain(started).min()?;
        Some(first.saturating_add(self.limit))
    }
}

impl State {
    /// Puts a request in a free slot; returns its number.
    fn put(&mut self, slot: Slot) -> u32 {
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = slot;
            return number;
        }
        self.slots.push(slot);
        // Requests that exist at the same time take far more memory than there is before.
        (self.slots.len() - 1) as u32
    }

    /// Takes a request out of its slot.
    fn take(&mut self, number: u32) -> Slot {
        self.free.push(number);
        let free = Slot { phase: Phase::Free, receivers: Receivers::new(), submitted: 0 };
        std::mem::replace(&mut self.slots[number as usize], free)
    }

    /// The request that was started first of those in flight.
    fn first_started(&mut self) -> Option<(u64, u32)> {
        while let Some(&(since, number)) = self.started.front() {
            match self.slots[number as usize].phase {
                Phase::Started { at, .. } if at == since => return Some((since, number)),
                _ => self.started.pop_front(),
            };
        }
        None
    }
}

impl Slot {
    fn expire(&mut self) -> Expired {
        Expired { receivers: std::mem::take(&mut self.receivers), submitted: self.submitted }
    }
}

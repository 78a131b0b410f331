//! A hardware queue as everybody shares it: requests that wait for whoever drives it, its tags,
//! and its counters.
//!
//! A driving thread is woken when there is something to do and it sleeps, not for every request.
//! That it is going to sleep is decided under the lock under which requests arrive, so that none
//! is missed.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use smallvec::SmallVec;
use undercroft_tags::TagSet;

use super::gate::Activity;
use super::{RequestList, Writers};
use crate::affinity::current_cpu;
use crate::affinity::list::PushList;
use crate::affinity::redirect::Answers;
use crate::drivers::Bell;
use crate::request::Request;
use crate::sleep::{Alarm, Event};
use crate::statistics::{Counters, QueueLatencyCells};

/// Most requests that wait, whatever their size.
const MAX_WAITING: usize = 1024;

/// What submitters, drivers and readers of statistics share of a hardware queue.
pub(super) struct HardwareQueue {
    pub(super) index: usize,
    pub(super) tags: TagSet,
    /// When the request with a tag was started, in nanoseconds, and [`STOPPED`]; 0 = not in flight.
    /// Kept only where requests have a time limit.
    pub(super) started: Box<[AtomicU64]>,
    inbox: Mutex<Inbox>,
    /// Whether `inbox` holds requests; a hint for a driver that comes by often.
    has_mail: AtomicBool,
    /// Requests of this queue that wait for others that overlap.
    held: AtomicUsize,
    /// There is room again.
    room: Event,
    max_bytes: u64,
    /// What other threads of the leaf hand to the thread of this queue to be done there.
    answers: PushList<Answers>,
    /// Where a message reaches that thread, if it sleeps in a ring.
    bell: OnceLock<Bell>,
    pub(super) activity: CachePadded<Activity>,
    pub(super) counters: CachePadded<Counters>,
    pub(super) latencies: QueueLatencyCells,
}

/// Bit of [`HardwareQueue::started`]: the request had its time, and was stopped.
pub(super) const STOPPED: u64 = 1 << 63;

#[derive(Default)]
struct Inbox {
    waiting: RequestList,
    waiting_bytes: u64,
    /// Driving threads.
    threads: SmallVec<[Arc<Alarm>; 2]>,
    /// Those of them that sleep, or are about to, and have nothing to start.
    sleepers: SmallVec<[Arc<Alarm>; 2]>,
    closed: bool,
}

/// What is in an inbox for the thread that drives the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mail {
    /// Requests were taken.
    Requests,
    /// None at the moment.
    Empty,
    /// None, and none will come.
    Closed,
}

impl HardwareQueue {
    pub(super) fn new(index: usize, tags: TagSet, max_bytes: u64, has_time_limit: bool) -> Self {
        let timed = if has_time_limit { tags.max_depth() } else { 0 };
        Self {
            index,
            tags,
            started: (0..timed).map(|_| AtomicU64::new(0)).collect(),
            inbox: Mutex::default(),
            has_mail: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            room: Event::default(),
            max_bytes,
            answers: PushList::new(),
            bell: OnceLock::new(),
            activity: CachePadded::default(),
            counters: CachePadded::default(),
            latencies: QueueLatencyCells::default(),
        }
    }

    /// Appends `requests`, leaving the list empty, and wakes as many threads as there is work for.
    /// Waits for room if `may_wait`.
    pub(super) fn push(&self, requests: &mut RequestList, may_wait: bool) {
        while !requests.is_empty() {
            if may_wait && !self.inbox.lock().has_room(requests, self.max_bytes) {
                self.counters.waits.add(1, Writers::Many);
                let has_room = || self.inbox.lock().has_room(requests, self.max_bytes);
                self.room.wait_until(|| has_room().then_some(()));
            }
            let mut inbox = self.inbox.lock();
            while (!may_wait || inbox.has_room(requests, self.max_bytes))
                && let Some(request) = requests.pop()
            {
                inbox.waiting_bytes += request.length();
                inbox.waiting.push(request);
            }
            self.has_mail.store(true, Ordering::Release);
            let woken = inbox.sleepers_to_wake();
            drop(inbox);
            woken.iter().for_each(|alarm| alarm.ring());
        }
    }

    /// Counts a request that waits for others that overlap.
    pub(super) fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// Appends a request that waited for others that overlap.
    pub(super) fn release(&self, request: Request) {
        let mut inbox = self.inbox.lock();
        inbox.waiting_bytes += request.length();
        inbox.waiting.push(request);
        self.has_mail.store(true, Ordering::Release);
        // Under the lock, and after the mail: a thread that goes to sleep for what is held back
        // finds it there or here, and one that looks without the lock, first here, then there.
        self.held.fetch_sub(1, Ordering::Release);
        let woken = inbox.sleepers_to_wake();
        drop(inbox);
        woken.iter().for_each(|alarm| alarm.ring());
    }

    /// Whether a request waits for others that overlap.
    pub(super) fn is_holding(&self) -> bool {
        self.held.load(Ordering::Acquire) > 0
    }

    /// Whether a request waits for others that overlap, or to be taken.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_holding() || self.has_mail()
    }

    /// Says where a message reaches the only thread of this queue.
    pub(super) fn set_bell(&self, bell: Option<Bell>) {
        if let Some(bell) = bell {
            // Set once, when the thread starts.
            let _ = self.bell.set(bell);
        }
    }

    /// Where a message reaches the thread of this queue.
    pub(super) fn bell(&self) -> Option<&Bell> {
        self.bell.get()
    }

    /// Hands `answers` to the thread of this queue; returns whether it has to be told.
    pub(super) fn hand_over(&self, answers: Answers) -> bool {
        self.answers.push(answers)
    }

    /// What was handed to the thread of this queue.
    pub(super) fn take_answers(&self) -> Vec<Answers> {
        if self.answers.is_empty() { Vec::new() } else { self.answers.take_all() }
    }

    /// Whether something was handed to the thread of this queue.
    pub(super) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Whether [`take`](Self::take) may find something.
    pub(super) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Moves at most `count` requests to `requests`.
    pub(super) fn take(&self, requests: &mut RequestList, count: usize) -> Mail {
        let mut inbox = self.inbox.lock();
        let count = count.min(inbox.waiting.len());
        for _ in 0..count {
            let Some(request) = inbox.waiting.pop() else { break };
            inbox.waiting_bytes -= request.length();
            requests.push(request);
        }
        self.has_mail.store(!inbox.waiting.is_empty(), Ordering::Release);
        let closed = inbox.closed;
        drop(inbox);
        if count > 0 {
            self.room.notify();
            return Mail::Requests;
        }
        if closed { Mail::Closed } else { Mail::Empty }
    }

    /// Counts requests that a thread of this queue took, by where they were submitted.
    pub(super) fn count_taken(&self, requests: &RequestList) {
        if requests.is_empty() {
            return;
        }
        let cpu = current_cpu();
        let (mut local, mut remote) = (0, 0);
        for request in requests.iter() {
            let bios = request.bio_count() as u64;
            *(if request.inner.cpu == cpu { &mut local } else { &mut remote }) += bios;
        }
        for (counter, bios) in
            [(&self.counters.queued_local, local), (&self.counters.queued_remote, remote)]
        {
            if bios > 0 {
                counter.add(bios, Writers::Many);
            }
        }
    }

    /// Announces that the thread of `alarm` is going to sleep, unless there is something to do: a
    /// request to take or, for a thread that is not `busy` with others, its end, which is near if
    /// it `stays` only for them or the queue is closed.
    pub(super) fn may_sleep(&self, alarm: &Arc<Alarm>, busy: bool, stays: bool) -> bool {
        let mut inbox = self.inbox.lock();
        let busy = busy || self.is_holding();
        if !inbox.waiting.is_empty() || (!busy && (stays || inbox.closed)) {
            return false;
        }
        inbox.sleepers.push(Arc::clone(alarm));
        true
    }

    /// Takes the announcement back.
    pub(super) fn is_awake(&self, alarm: &Arc<Alarm>) {
        self.inbox.lock().sleepers.retain(|other| !Arc::ptr_eq(other, alarm));
    }

    /// Lets the threads end once nothing waits.
    pub(super) fn close(&self) {
        let mut inbox = self.inbox.lock();
        inbox.closed = true;
        let woken = std::mem::take(&mut inbox.sleepers);
        drop(inbox);
        woken.iter().for_each(|alarm| alarm.ring());
    }

    /// Makes a driving thread known.
    pub(super) fn attach(&self, alarm: &Arc<Alarm>) {
        self.inbox.lock().threads.push(Arc::clone(alarm));
    }

    /// Wakes every driving thread, to look around.
    pub(super) fn wake(&self) {
        let threads = self.inbox.lock().threads.clone();
        threads.iter().for_each(|alarm| alarm.ring());
    }
}

impl Inbox {
    /// Takes out as many sleepers as there is work for. All of them when the queue is closed: those
    /// who stay for what is held back may have nothing to stay for any more.
    fn sleepers_to_wake(&mut self) -> SmallVec<[Arc<Alarm>; 2]> {
        let count = if self.closed { usize::MAX } else { self.waiting.len() };
        self.sleepers.drain(..count.min(self.sleepers.len())).collect()
    }

    /// Whether the first of `requests` fits: one of any size, or many within the bound.
    fn has_room(&self, requests: &RequestList, max_bytes: u64) -> bool {
        let bytes = requests.first().map_or(0, Request::length);
        self.waiting.is_empty()
            || (self.waiting.len() < MAX_WAITING
                && self.waiting_bytes.saturating_add(bytes) <= max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bio, Buffer, Sector};

    #[test]
    fn room_is_for_one_request_of_any_size_or_many_within_the_bound() {
        let list = |bytes| {
            let write = Bio::write(Sector(0), Buffer::zeroed(bytes));
            RequestList::of(Request::new(write))
        };
        let mut inbox = Inbox::default();
        let (mut small, mut large) = (list(1024), list(2048));
        assert!(inbox.has_room(&large, 1024));
        inbox.waiting = list(1024);
        inbox.waiting_bytes = 1024;
        assert!(inbox.has_room(&small, 2048));
        assert!(!inbox.has_room(&large, 2048));
        for list in [&mut small, &mut large, &mut inbox.waiting] {
            list.pop().map(Request::complete).unwrap();
        }
    }
}

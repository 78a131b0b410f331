//! Driving a hardware queue: tags for its requests, and its driver queue. The common work of the
//! thread of a queue and of a submitter that has claimed one.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use undercroft_tags::{Attempt, CallbackWait, Caller, Tag};

use super::queue::HardwareQueue;
use crate::driver::{Bell, Completions, Driver, DriverQueue, Wait};
use crate::request::RequestList;
use crate::threads::Alarm;

/// The side of a hardware queue that one thread has to itself.
pub(crate) struct Driving<D: Driver> {
    pub(crate) hardware: Arc<HardwareQueue>,
    queue: D::Queue,
    /// Without a tag, oldest first.
    untagged: RequestList,
    /// With a tag, but the driver had no room.
    tagged: RequestList,
    /// What ended, to be answered by the caller when it has nothing borrowed any more.
    pub(crate) completions: Completions,
    tags: Caller,
    /// The place among the waiters for a tag.
    tag_wait: Option<CallbackWait>,
    /// How many requests of the hardware queue that timed out the driver was asked to stop.
    timed_out: u64,
}

impl<D: Driver> Driving<D> {
    pub(crate) fn new(hardware: &Arc<HardwareQueue>, queue: D::Queue) -> Self {
        Self {
            hardware: Arc::clone(hardware),
            queue,
            untagged: RequestList::new(),
            tagged: RequestList::new(),
            completions: Completions::default(),
            tags: hardware.tags.caller(),
            tag_wait: None,
            timed_out: 0,
        }
    }

    /// Starts `requests` behind the waiting ones, as far as there are tags and room.
    pub(crate) fn start(&mut self, requests: &mut RequestList) {
        if let Some(deadlines) = &self.hardware.deadlines {
            deadlines.sort_out(requests, &mut self.completions);
        }
        if !(self.untagged.is_empty() && self.tagged.is_empty()) {
            self.untagged.append(requests);
            return self.go_on();
        }
        // Nothing waits: the list goes to the driver as it is.
        let tagged = self.tag(requests);
        if tagged < requests.len() {
            self.untagged = requests.split_off(tagged);
        }
        if tagged > 0 {
            self.queue.start(requests, &mut self.completions);
            self.tagged.append(requests);
        }
    }

    /// Starts waiting requests, as far as there are tags and room now.
    pub(crate) fn go_on(&mut self) {
        if !self.tagged.is_empty() {
            self.queue.start(&mut self.tagged, &mut self.completions);
        }
        if self.tagged.is_empty() && !self.untagged.is_empty() {
            let mut requests = std::mem::take(&mut self.untagged);
            let tagged = self.tag(&mut requests);
            self.untagged = requests.split_off(tagged);
            if tagged > 0 {
                self.tagged = requests;
                self.queue.start(&mut self.tagged, &mut self.completions);
            }
        }
        if self.untagged.is_empty() {
            self.tag_wait = None;
        }
    }

    /// Gives tags to the first requests, one read-modify-write for many; returns to how many.
    fn tag(&mut self, requests: &mut RequestList) -> usize {
        let mut count = 0;
        let wanted = requests.len();
        while count < wanted {
            // At most a word's worth at a time, so this cannot be cut off.
            let mut tags = self.tags.try_get_batch((wanted - count).min(64) as u32);
            if tags.is_empty() {
                break;
            }
            for request in requests.iter_mut().skip(count) {
                let Some(tag) = tags.pop() else { break };
                request.inner.tag = Some(tag);
                count += 1;
            }
        }
        if let Some(deadlines) = &self.hardware.deadlines
            && count > 0
        {
            deadlines.start(requests.iter().take(count));
        }
        count
    }

    /// Whether requests wait for a tag or for room.
    pub(crate) fn is_held_up(&self) -> bool {
        !(self.untagged.is_empty() && self.tagged.is_empty())
    }

    /// Whether the driver is to be asked to stop requests that timed out.
    pub(crate) fn has_to_stop(&self) -> bool {
        self.hardware
            .deadlines
            .as_ref()
            .is_some_and(|deadlines| deadlines.has_timed_out_since(self.timed_out))
    }

    /// Asks the driver for an early end of requests that timed out, and takes out those that were answered
    /// while they waited here.
    pub(crate) fn mind_limits(&mut self) {
        if let Some(deadlines) = &self.hardware.deadlines {
            for tag in deadlines.timed_out_since(&mut self.timed_out) {
                self.queue.cancel(tag);
            }
            deadlines.sort_out(&mut self.tagged, &mut self.completions);
            deadlines.sort_out(&mut self.untagged, &mut self.completions);
        }
    }

    /// Requests in the driver.
    pub(crate) fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    /// Collects completions.
    pub(crate) fn reap(&mut self, wait: Wait) {
        // A broken queue has put its requests into the completions, as failed.
        let _ = self.queue.reap(&mut self.completions, wait);
    }

    /// Sends requests that were started, and collects those that have ended.
    pub(crate) fn poll(&mut self) {
        if self.in_flight() > 0 {
            self.reap(Wait::No);
        }
    }

    /// For a thread that sleeps for several queues: has `event` become readable when something ends
    /// here. Returns when to look in any case.
    pub(crate) fn expect(&mut self, event: BorrowedFd<'_>) -> Option<Instant> {
        if self.in_flight() > 0 { self.queue.expect(event) } else { None }
    }

    /// Ends what [`expect`](Self::expect) began.
    pub(crate) fn ignore(&mut self) {
        self.queue.ignore();
    }

    /// Sleeps until something happens: a completion, or a ring of `alarm`, also for a tag that was
    /// [awaited](Self::await_tag).
    pub(crate) fn sleep(&mut self, alarm: &Alarm) {
        // Messages of other rings arrive in the driver, too.
        if self.in_flight() > 0 || self.hardware.bell().is_some() {
            let waker = self.queue.waker();
            return alarm.sleep_in(waker, || self.reap(Wait::Forever));
        }
        alarm.park(None);
    }

    /// When nothing in flight can bring a tag back, asks for a ring of `alarm` when there is one.
    /// Returns whether there is one now.
    pub(crate) fn await_tag(&mut self, alarm: &Arc<Alarm>) -> bool {
        if self.untagged.is_empty() || self.in_flight() > 0 {
            return false;
        }
        let attempt = match self.tag_wait.take() {
            Some(wait) if !wait.is_woken() => {
                self.tag_wait = Some(wait);
                return false;
            }
            Some(wait) => wait.retry(&mut self.tags),
            None => {
                let alarm = Arc::clone(alarm);
                self.tags.get_or_call(Arc::new(move || alarm.ring()))
            }
        };
        match attempt {
            Attempt::Tag(tag) => {
                // The request gets it with the others.
                self.tags.put(tag);
                true
            }
            Attempt::Waiting(wait) => {
                self.tag_wait = Some(wait);
                false
            }
        }
    }

    /// Sends a message to the queue of `bell`.
    pub(crate) fn ring(&mut self, bell: &Bell) {
        self.queue.ring(bell);
        self.reap(Wait::No);
    }

    /// Asks the driver for an early end of everything in flight.
    pub(crate) fn stop_all(&mut self) {
        let busy: Vec<u32> = self.hardware.tags.iter_busy().map(Tag::number).collect();
        busy.into_iter().for_each(|tag| self.queue.cancel(tag));
    }

    /// The requests that the driver has not seen.
    pub(crate) fn take_waiting(&mut self) -> RequestList {
        self.tag_wait = None;
        let mut waiting = std::mem::take(&mut self.tagged);
        self.hardware
            .tags
            .put_all(waiting.iter_mut().filter_map(|request| request.inner.tag.take()));
        waiting.append(&mut self.untagged);
        waiting
    }
}

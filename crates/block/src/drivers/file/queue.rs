//! The queue between submitters and workers: bounded in bytes, and keeping the order of requests
//! that overlap.
//!
//! A worker takes the oldest request that conflicts neither with one being executed nor with an
//! older one still queued. Two requests conflict when they share a sector and one of them
//! modifies, or when one of them is a flush, which therefore waits for all before it. Conflicts
//! are rare (a file system does not write a block while it is being written), so the search
//! nearly always ends at the first request; its cost is bounded by the length of the queue.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use crate::bio::Operation;
use crate::request::Request;
use crate::sector::{Sector, overlap};

/// Most requests in the queue, whatever their size: bounds the search for conflicts.
const MAX_REQUESTS: usize = 256;

/// Requests that wait for a worker, and those that have one.
pub(super) struct RequestQueue {
    state: Mutex<State>,
    /// A request may be ready, or the queue was closed.
    ready: Condvar,
    /// The queue has room again.
    room: Condvar,
    /// Nothing is queued or running.
    idle: Condvar,
    max_bytes: u64,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Request>,
    waiting_bytes: u64,
    running: SmallVec<[Running; 4]>,
    closed: bool,
}

/// What a request in execution excludes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Running {
    sectors: Range<Sector>,
    modifies: bool,
}

/// A request to execute now.
pub(super) struct Task<'queue> {
    pub(super) request: Request,
    /// To be dropped when the request was answered.
    pub(super) slot: Slot<'queue>,
}

/// The place of a running request in its queue; dropping it lets those through that waited for it.
pub(super) struct Slot<'queue> {
    queue: &'queue RequestQueue,
    running: Running,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.queue.finish(&self.running);
    }
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Declares that this thread takes requests from a queue. It never waits for room in one, because
/// it may be the thread that has to make the room (completion callbacks run in workers).
pub(super) fn mark_worker_thread() {
    IS_WORKER.set(true);
}

impl Running {
    fn of(request: &Request) -> Self {
        if request.operation() == Operation::Flush {
            return Self { sectors: Sector::ZERO..Sector(u64::MAX), modifies: true };
        }
        Self { sectors: request.sectors(), modifies: request.operation().modifies() }
    }

    fn conflicts_with(&self, other: &Self) -> bool {
        (self.modifies || other.modifies) && overlap(&self.sectors, &other.sectors)
    }
}

impl RequestQueue {
    /// An empty queue in which at most `max_bytes` wait, or one request of any size.
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            state: Mutex::default(),
            ready: Condvar::new(),
            room: Condvar::new(),
            idle: Condvar::new(),
            max_bytes,
        }
    }

    /// Appends `request`, waiting for room unless this thread is a worker.
    pub(super) fn push(&self, request: Request) {
        let mut state = self.state.lock();
        if !IS_WORKER.get() {
            while !state.has_room(request.length(), self.max_bytes) {
                self.room.wait(&mut state);
            }
        }
        state.waiting_bytes += request.length();
        state.waiting.push_back(request);
        drop(state);
        self.ready.notify_one();
    }

    /// Starts `request` ahead of the queue, for the caller to execute; queues it for the workers if
    /// an older one is in its way.
    pub(super) fn start_or_push(&self, request: Request) -> Option<Task<'_>> {
        let running = Running::of(&request);
        let mut state = self.state.lock();
        let in_the_way = state.running.iter().any(|other| running.conflicts_with(other))
            || state.waiting.iter().any(|other| running.conflicts_with(&Running::of(other)));
        if in_the_way {
            drop(state);
            self.push(request);
            return None;
        }
        state.running.push(running.clone());
        drop(state);
        Some(Task { request, slot: Slot { queue: self, running } })
    }

    /// Takes a request, waiting for one; `None` when the queue is closed and empty.
    pub(super) fn pop(&self) -> Option<Task<'_>> {
        let mut state = self.state.lock();
        loop {
            if let Some((request, running)) = state.take() {
                drop(state);
                self.room.notify_all();
                return Some(Task { request, slot: Slot { queue: self, running } });
            }
            if state.closed && state.waiting.is_empty() {
                return None;
            }
            self.ready.wait(&mut state);
        }
    }

    /// Records that the request behind `running` was answered.
    fn finish(&self, running: &Running) {
        let mut state = self.state.lock();
        if let Some(index) = state.running.iter().position(|other| other == running) {
            state.running.swap_remove(index);
        }
        let idle = state.running.is_empty() && state.waiting.is_empty();
        // Whoever slept because of this request looks again; the last time, to end after `close`.
        let ready = !state.waiting.is_empty();
        drop(state);
        if ready {
            self.ready.notify_all();
        }
        if idle {
            self.idle.notify_all();
        }
    }

    /// Waits until nothing is queued or running.
    pub(super) fn drain(&self) {
        let mut state = self.state.lock();
        while !(state.running.is_empty() && state.waiting.is_empty()) {
            self.idle.wait(&mut state);
        }
    }

    /// Lets the workers end once the queue is empty.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.ready.notify_all();
    }
}

impl State {
    fn has_room(&self, bytes: u64, max_bytes: u64) -> bool {
        self.waiting.is_empty()
            || (self.waiting.len() < MAX_REQUESTS
                && self.waiting_bytes.saturating_add(bytes) <= max_bytes)
    }

    /// Moves the oldest request without a conflict from waiting to running.
    fn take(&mut self) -> Option<(Request, Running)> {
        let mut skipped: SmallVec<[Running; 4]> = SmallVec::new();
        let mut found = None;
        for (index, request) in self.waiting.iter().enumerate() {
            let running = Running::of(request);
            if self.running.iter().chain(&skipped).any(|other| running.conflicts_with(other)) {
                skipped.push(running);
            } else {
                found = Some((index, running));
                break;
            }
        }
        let (index, running) = found?;
        let request = self.waiting.remove(index)?;
        self.waiting_bytes -= request.length();
        self.running.push(running.clone());
        Some((request, running))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bio, Buffer};

    fn queue_of(bios: impl IntoIterator<Item = Bio>) -> RequestQueue {
        let queue = RequestQueue::new(1 << 20);
        bios.into_iter().for_each(|bio| queue.push(Request::new(bio)));
        queue
    }

    fn write(sector: u64) -> Bio {
        Bio::write(Sector(sector), Buffer::zeroed(1024))
    }

    fn read(sector: u64) -> Bio {
        Bio::read(Sector(sector), Buffer::zeroed(1024))
    }

    /// Starts every request that may start; returns their first sectors and what they exclude.
    fn start_all(queue: &RequestQueue) -> Vec<(u64, Running)> {
        let mut started = Vec::new();
        while let Some((request, running)) = queue.state.lock().take() {
            started.push((request.sector().0, running));
            request.complete();
        }
        started
    }

    fn sectors(started: &[(u64, Running)]) -> Vec<u64> {
        started.iter().map(|(sector, _)| *sector).collect()
    }

    #[test]
    fn overlapping_requests_wait_for_older_ones_and_others_pass() {
        let queue = queue_of([write(0), write(1), read(2), write(8), read(8), read(20)]);
        let first = start_all(&queue);
        // The read at 2 waits for the write at 1, which only waits itself.
        assert_eq!(sectors(&first), [0, 8, 20]);
        queue.finish(&first[0].1);
        let second = start_all(&queue);
        assert_eq!(sectors(&second), [1]);
        queue.finish(&second[0].1);
        assert_eq!(sectors(&start_all(&queue)), [2]);
        queue.finish(&first[1].1);
        assert_eq!(sectors(&start_all(&queue)), [8]);
    }

    #[test]
    fn reads_share_sectors() {
        assert_eq!(sectors(&start_all(&queue_of([read(0), read(0), read(1)]))), [0, 0, 1]);
    }

    #[test]
    fn a_flush_waits_for_all_before_it_and_holds_all_after_it() {
        let queue = queue_of([write(4), read(8), Bio::flush(), write(12)]);
        let before = start_all(&queue);
        assert_eq!(sectors(&before), [4, 8]);
        queue.finish(&before[0].1);
        assert!(start_all(&queue).is_empty());
        queue.finish(&before[1].1);
        let flush = start_all(&queue);
        assert_eq!(sectors(&flush), [0]);
        queue.finish(&flush[0].1);
        assert_eq!(sectors(&start_all(&queue)), [12]);
    }

    #[test]
    fn an_immediate_request_passes_unless_an_older_one_is_in_its_way() {
        let queue = queue_of([write(0)]);
        assert!(queue.start_or_push(Request::new(read(1))).is_none());
        let task = queue.start_or_push(Request::new(read(8))).unwrap();
        assert!(queue.start_or_push(Request::new(write(9))).is_none());
        let started = start_all(&queue);
        assert_eq!(sectors(&started), [0]);
        queue.finish(&started[0].1);
        assert_eq!(sectors(&start_all(&queue)), [1]);
        task.request.complete();
        drop(task.slot);
        assert_eq!(sectors(&start_all(&queue)), [9]);
    }

    #[test]
    fn room_is_for_one_request_of_any_size_or_many_within_the_bound() {
        let mut state = State::default();
        assert!(state.has_room(u64::MAX, 2048));
        state.waiting.push_back(Request::new(write(0)));
        state.waiting_bytes = 1024;
        assert!(state.has_room(1024, 2048));
        assert!(!state.has_room(1025, 2048));
        state.waiting.drain(..).for_each(Request::complete);
    }
}

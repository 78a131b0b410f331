//! A hardware queue as its submitters and its threads share it: the requests that wait for a
//! thread, and who sleeps.
//!
//! A thread is woken when there is something to do and it sleeps, not for every request. It sleeps
//! in one of two places: here, when its driver queue is empty, or in its driver, waiting for a
//! completion; a waker reaches it there. Both are decided under the lock under which requests
//! arrive, so that none is missed.

use std::task::Waker;

use parking_lot::{Condvar, Mutex};
use smallvec::SmallVec;

use super::RequestList;

/// Most requests that wait, whatever their size.
const MAX_WAITING: usize = 1024;

/// Where requests wait for the threads of a hardware queue.
#[derive(Debug)]
pub(super) struct HardwareQueue {
    inbox: Mutex<Inbox>,
    /// A request waits, or the queue was closed.
    ready: Condvar,
    /// There is room again.
    room: Condvar,
    max_bytes: u64,
}

#[derive(Debug, Default)]
struct Inbox {
    waiting: RequestList,
    waiting_bytes: u64,
    /// Threads that sleep here.
    idle: usize,
    /// Wakers of the threads that sleep in their drivers.
    reaping: SmallVec<[Waker; 1]>,
    closed: bool,
}

/// What a thread of the queue found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Requests, or none although the thread need not sleep for them.
    Requests,
    /// No request, and none will come.
    Closed,
}

impl HardwareQueue {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self { inbox: Mutex::default(), ready: Condvar::new(), room: Condvar::new(), max_bytes }
    }

    /// Appends `requests`, leaving the list empty. Waits for room if `may_wait`.
    pub(super) fn push(&self, requests: &mut RequestList, may_wait: bool) {
        let mut inbox = self.inbox.lock();
        while let Some(request) = requests.pop() {
            while may_wait && !inbox.has_room(request.length(), self.max_bytes) {
                self.wake(&mut inbox);
                self.room.wait(&mut inbox);
            }
            inbox.waiting_bytes += request.length();
            inbox.waiting.push(request);
        }
        self.wake(&mut inbox);
    }

    /// Wakes as many threads as there is work for.
    fn wake(&self, inbox: &mut Inbox) {
        let woken = inbox.idle.min(inbox.waiting.len());
        for _ in 0..woken {
            self.ready.notify_one();
        }
        if woken == 0
            && !inbox.waiting.is_empty()
            && let Some(waker) = inbox.reaping.pop()
        {
            waker.wake();
        }
    }

    /// Moves at most `count` requests to `requests`; sleeps until there is one if `may_sleep`.
    pub(super) fn take(&self, requests: &mut RequestList, count: usize, may_sleep: bool) -> Taken {
        let mut inbox = self.inbox.lock();
        while may_sleep && inbox.waiting.is_empty() {
            if inbox.closed {
                return Taken::Closed;
            }
            inbox.idle += 1;
            self.ready.wait(&mut inbox);
            inbox.idle -= 1;
        }
        let count = count.min(inbox.waiting.len());
        for _ in 0..count {
            let Some(request) = inbox.waiting.pop() else { break };
            inbox.waiting_bytes -= request.length();
            requests.push(request);
        }
        drop(inbox);
        if count > 0 {
            self.room.notify_all();
        }
        Taken::Requests
    }

    /// Announces that the thread is going to sleep in its driver, from where `waker` gets it out.
    /// Returns whether it may: not if there are requests to take.
    pub(super) fn may_reap(&self, waker: Waker) -> bool {
        let mut inbox = self.inbox.lock();
        if !inbox.waiting.is_empty() {
            return false;
        }
        inbox.reaping.push(waker);
        true
    }

    /// Takes the announcement back.
    pub(super) fn reaped(&self, waker: &Waker) {
        self.inbox.lock().reaping.retain(|other| !other.will_wake(waker));
    }

    /// Lets the threads end once nothing waits.
    pub(super) fn close(&self) {
        self.inbox.lock().closed = true;
        self.ready.notify_all();
    }
}

impl Inbox {
    fn has_room(&self, bytes: u64, max_bytes: u64) -> bool {
        self.waiting.is_empty()
            || (self.waiting.len() < MAX_WAITING
                && self.waiting_bytes.saturating_add(bytes) <= max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bio, Buffer, Request, Sector};

    #[test]
    fn room_is_for_one_request_of_any_size_or_many_within_the_bound() {
        let mut inbox = Inbox::default();
        assert!(inbox.has_room(u64::MAX, 2048));
        let write = Bio::write(Sector(0), Buffer::zeroed(1024));
        inbox.waiting.push(Request::new(write));
        inbox.waiting_bytes = 1024;
        assert!(inbox.has_room(1024, 2048));
        assert!(!inbox.has_room(1025, 2048));
        inbox.waiting.pop().map(Request::complete).unwrap();
    }
}

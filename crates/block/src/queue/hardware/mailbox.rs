//! Requests that wait for the thread that drives a hardware queue: those that were submitted, and
//! those that are held back until others end.
//!
//! A driving thread is woken when there is something to do and it sleeps, not for every request.
//! That it is going to sleep is decided under the lock under which requests arrive, so that none
//! is missed. A model at the end of this file checks it.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::request::{Request, RequestList};
use crate::threads::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};
use crate::threads::{Alarm, Event};

/// Most requests that wait, of any size.
const MAX_WAITING: usize = 1024;

/// Who waits for room is told when so many requests have left, however full it is: others may keep it more
/// than half full and never wait.
const MAX_LEFT: usize = 64;

/// Where submitters leave requests for the threads of one hardware queue.
pub(crate) struct Mailbox {
    inbox: Mutex<Inbox>,
    /// Whether `inbox` holds requests; a hint for a driver that comes by often.
    has_mail: AtomicBool,
    /// Requests of this queue that wait for others that overlap.
    held: AtomicUsize,
    /// There is room again: half of it, or many requests have left.
    room: Event,
    max_bytes: u64,
}

#[derive(Default)]
struct Inbox {
    waiting: RequestList,
    waiting_bytes: u64,
    /// Requests that have left since who waits for room was told.
    left: usize,
    /// Driving threads.
    threads: SmallVec<[Arc<Alarm>; 2]>,
    /// Those of them that sleep, or are about to, and have nothing to start.
    sleepers: SmallVec<[Arc<Alarm>; 2]>,
    closed: bool,
}

/// The contents of an inbox for the thread that drives the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mail {
    /// Requests were taken.
    Requests,
    /// None at the moment.
    Empty,
    /// None, and none will come.
    Closed,
}

impl Mailbox {
    /// An empty one for requests of about so many bytes.
    pub(crate) fn new(max_bytes: u64) -> Self {
        Self {
            inbox: Mutex::new(Inbox::default()),
            has_mail: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            room: Event::default(),
            max_bytes,
        }
    }

    /// Appends `requests`, leaving the list empty, and wakes as many threads as there is work for.
    /// Waits for room if `may_wait`, and calls `waits` each time.
    pub(crate) fn push(&self, requests: &mut RequestList, may_wait: bool, waits: impl Fn()) {
        while !requests.is_empty() {
            if may_wait && !self.inbox.lock().has_room(requests, self.max_bytes) {
                waits();
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
    pub(crate) fn hold(&self) {
        self.held.fetch_add(1, Ordering::Relaxed);
    }

    /// Appends a request that waited for others that overlap.
    pub(crate) fn release(&self, request: Request) {
        let mut inbox = self.inbox.lock();
        inbox.waiting_bytes += request.length();
        inbox.waiting.push(request);
        self.has_mail.store(true, Ordering::Release);
        // Under the lock, and after the mail: a thread that goes to sleep for requests held back
        // finds them there or here, and one that looks without the lock, first here, then there.
        self.held.fetch_sub(1, Ordering::Release);
        let woken = inbox.sleepers_to_wake();
        drop(inbox);
        woken.iter().for_each(|alarm| alarm.ring());
    }

    /// Counts a request as gone that waited for others that overlap. A thread that stays for it has
    /// to be [woken](Self::wake).
    pub(crate) fn forget_held(&self) {
        self.held.fetch_sub(1, Ordering::Release);
    }

    /// Takes out the requests that `is_unwanted` knows, which makes room.
    pub(crate) fn withdraw(
        &self,
        mut is_unwanted: impl FnMut(&Request) -> bool,
        mut withdrawn: impl FnMut(Request),
    ) {
        let mut inbox = self.inbox.lock();
        let mut bytes = 0;
        inbox.waiting.keep(
            |request| !is_unwanted(request),
            |request| {
                bytes += request.length();
                withdrawn(request);
            },
        );
        inbox.waiting_bytes -= bytes;
        self.has_mail.store(!inbox.waiting.is_empty(), Ordering::Release);
        drop(inbox);
        self.room.notify();
    }

    /// Whether a request waits for others that overlap.
    pub(crate) fn is_holding(&self) -> bool {
        self.held.load(Ordering::Acquire) > 0
    }

    /// Whether a request waits for others that overlap, or to be taken.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_holding() || self.has_mail()
    }

    /// Whether [`take`](Self::take) may find something.
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// Moves at most `count` requests to `requests`.
    pub(crate) fn take(&self, requests: &mut RequestList, count: usize) -> Mail {
        let mut inbox = self.inbox.lock();
        let count = count.min(inbox.waiting.len());
        for _ in 0..count {
            let Some(request) = inbox.waiting.pop() else { break };
            inbox.waiting_bytes -= request.length();
            requests.push(request);
        }
        self.has_mail.store(!inbox.waiting.is_empty(), Ordering::Release);
        // One who waits for room is not woken for each request, but when there is room for many.
        inbox.left += count;
        let has_much_room =
            inbox.waiting.len() <= MAX_WAITING / 2 && inbox.waiting_bytes <= self.max_bytes / 2;
        let is_told = count > 0 && (has_much_room || inbox.left > MAX_LEFT);
        if is_told {
            inbox.left = 0;
        }
        let closed = inbox.closed;
        drop(inbox);
        if is_told {
            self.room.notify();
        }
        if count > 0 {
            return Mail::Requests;
        }
        if closed { Mail::Closed } else { Mail::Empty }
    }

    /// Announces that the thread of `alarm` is going to sleep, unless there is something to do: a
    /// request to take or, for a thread that is not `busy` with others, its end, which is near if
    /// it `stays` only for them or the queue is closed.
    pub(crate) fn may_sleep(&self, alarm: &Arc<Alarm>, busy: bool, stays: bool) -> bool {
        let mut inbox = self.inbox.lock();
        let busy = busy || self.is_holding();
        if !inbox.waiting.is_empty() || (!busy && (stays || inbox.closed)) {
            return false;
        }
        inbox.sleepers.push(Arc::clone(alarm));
        true
    }

    /// Takes the announcement back.
    pub(crate) fn is_awake(&self, alarm: &Arc<Alarm>) {
        self.inbox.lock().sleepers.retain(|other| !Arc::ptr_eq(other, alarm));
    }

    /// Lets the threads end once nothing waits.
    pub(crate) fn close(&self) {
        let mut inbox = self.inbox.lock();
        inbox.closed = true;
        let woken = std::mem::take(&mut inbox.sleepers);
        drop(inbox);
        woken.iter().for_each(|alarm| alarm.ring());
    }

    /// Makes a driving thread known.
    pub(crate) fn attach(&self, alarm: &Arc<Alarm>) {
        self.inbox.lock().threads.push(Arc::clone(alarm));
    }

    /// Wakes every driving thread, to look around.
    pub(crate) fn wake(&self) {
        let threads = self.inbox.lock().threads.clone();
        threads.iter().for_each(|alarm| alarm.ring());
    }
}

impl Inbox {
    /// Takes out as many sleepers as there is work for. All of them when the queue is closed: those
    /// that stay for requests held back may have no reason to stay any more.
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
    use crate::bio::Bio;
    use crate::memory::Buffer;
    use crate::units::Sector;

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

    /// Another keeps the mailbox more than half full all the time.
    #[test]
    #[cfg(not(loom))]
    fn who_waits_for_room_gets_it_beside_others_who_do_not() {
        let mailbox = Mailbox::new(4096);
        let write =
            |size| RequestList::of(Request::new(Bio::write(Sector(0), Buffer::zeroed(size))));
        let push = |size| mailbox.push(&mut write(size), true, || ());
        (0..8).for_each(|_| push(512));
        let (waits, arrived) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (mailbox, waits, arrived) = (&mailbox, &waits, &arrived);
            scope.spawn(move || {
                let told = || waits.store(true, Ordering::SeqCst);
                mailbox.push(&mut write(1024), true, told);
                arrived.store(true, Ordering::SeqCst);
            });
            while !waits.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            let mut taken = RequestList::new();
            // Room for it comes and stays, and the bound is never less than half used.
            (0..2).for_each(|_| assert!(mailbox.take(&mut taken, 1) == Mail::Requests));
            while !arrived.load(Ordering::SeqCst) {
                mailbox.take(&mut taken, 1);
                push(512);
                taken.pop().map(Request::complete).unwrap();
                std::thread::yield_now();
            }
            while mailbox.take(&mut taken, 16) == Mail::Requests {}
            while taken.pop().map(Request::complete).is_some() {}
        });
    }

    #[test]
    #[cfg(not(loom))]
    fn who_waits_for_room_gets_it_whatever_the_size() {
        const REQUESTS: usize = 3_000;
        const BOUND: u64 = 4096;
        // Less than half of the bound, more than that, and more than all of it.
        let sizes = [512, 3072, 1024, 8192, 4096, 2048];
        let mailbox = Mailbox::new(BOUND);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for size in sizes.into_iter().cycle().take(REQUESTS) {
                    let write = Bio::write(Sector(0), Buffer::zeroed(size));
                    mailbox.push(&mut RequestList::of(Request::new(write)), true, || ());
                }
            });
            let (mut taken, mut expected) = (RequestList::new(), sizes.into_iter().cycle());
            for _ in 0..REQUESTS {
                while mailbox.take(&mut taken, 1) == Mail::Empty {
                    std::thread::yield_now();
                }
                let request = taken.pop().unwrap();
                assert_eq!(Some(request.length()), expected.next().map(|size| size as u64));
                request.complete();
            }
        });
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::thread;

    use super::*;
    use crate::bio::Bio;

    /// Takes everything; returns how many requests it was.
    fn take(mailbox: &Mailbox) -> (usize, Mail) {
        let mut requests = RequestList::new();
        let mail = mailbox.take(&mut requests, usize::MAX);
        (requests.into_iter().map(Request::complete).count(), mail)
    }

    fn sleep(mailbox: &Mailbox, alarm: &Arc<Alarm>, stays: bool) {
        if mailbox.may_sleep(alarm, false, stays) {
            alarm.park(None);
            mailbox.is_awake(alarm);
        }
    }

    #[test]
    fn what_was_held_back_is_seen_at_any_moment_and_wakes_its_thread() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new(1));
            mailbox.hold();
            let other = {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || mailbox.release(Request::new(Bio::flush())))
            };
            let alarm = Alarm::current();
            loop {
                assert!(mailbox.is_waiting(), "a request is neither held back nor released");
                if take(&mailbox).0 == 1 {
                    break;
                }
                sleep(&mailbox, &alarm, true);
            }
            other.join().unwrap();
            assert!(!mailbox.is_waiting());
        });
    }
}

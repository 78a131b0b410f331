//! One wait queue: waiters in order of arrival.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::signal::{Signal, Signals};
use crate::demand::Demand;
use crate::statistics::WaitCounts;
use crate::sync::{AtomicU32, AtomicUsize, Mutex, Ordering};

/// Order of arrival in one queue.
pub(crate) type Ticket = u64;

/// A waiter is in the list until it is woken or leaves by itself: not to be there any more *is* to
/// be woken. There is no other state that could disagree.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Length of the list, to pass by an empty queue without its lock.
    len: AtomicUsize,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    waiters: BTreeMap<Ticket, Waiter>,
    next: Ticket,
    counts: WaitCounts,
}

#[derive(Debug)]
struct Waiter {
    signal: Signal,
    demand: Demand,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self { len: AtomicUsize::new(0), list: Mutex::new(List::default()) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::SeqCst)
    }

    pub(crate) fn counts(&self) -> WaitCounts {
        self.list.lock().counts
    }

    /// Publishes a waiter, a new one at the end, one that was here before at its old place. The
    /// caller goes on with the barrier and a second look (invariant I1). `waiting` is the sum over
    /// queues.
    pub(crate) fn publish(
        &self,
        ticket: Option<Ticket>,
        signal: Signal,
        demand: Demand,
        waiting: &AtomicUsize,
    ) -> Ticket {
        let mut list = self.list.lock();
        let ticket = ticket.unwrap_or(list.next);
        list.next = list.next.max(ticket + 1);
        list.waiters.insert(ticket, Waiter { signal, demand });
        self.len.fetch_add(1, Ordering::SeqCst);
        waiting.fetch_add(1, Ordering::SeqCst);
        ticket
    }

    /// Whether the waiter has been woken; if not, it will be told through `signal` from now on.
    pub(crate) fn is_woken(&self, ticket: Ticket, signal: Option<Signal>) -> bool {
        match self.list.lock().waiters.get_mut(&ticket) {
            None => true,
            Some(waiter) => {
                if let Some(signal) = signal {
                    waiter.signal = signal;
                }
                false
            }
        }
    }

    /// Takes a waiter out that leaves by itself; false if it was woken before.
    pub(crate) fn leave(&self, ticket: Ticket, waiting: &AtomicUsize) -> bool {
        let mut list = self.list.lock();
        // The waiter's signal is dropped after the lock is released: it may run foreign code.
        let waiter = list.waiters.remove(&ticket);
        if waiter.is_some() {
            self.len.fetch_sub(1, Ordering::Relaxed);
            waiting.fetch_sub(1, Ordering::Relaxed);
        }
        drop(list);
        waiter.is_some()
    }

    /// Takes out the first `most` waiters for which `can_use` holds. They count as woken, and
    /// threads among them as `called`.
    pub(crate) fn take(
        &self,
        most: u32,
        can_use: impl Fn(Demand) -> bool,
        waiting: &AtomicUsize,
        called: &AtomicU32,
    ) -> Signals {
        let mut list = self.list.lock();
        let tickets: SmallVec<[Ticket; 8]> = list
            .waiters
            .iter()
            .filter(|(_, waiter)| can_use(waiter.demand))
            .map(|(ticket, _)| *ticket)
            .take(most as usize)
            .collect();
        let signals: SmallVec<[Signal; 8]> = tickets
            .iter()
            .filter_map(|ticket| list.waiters.remove(ticket))
            .map(|waiter| waiter.signal)
            .collect();
        let count = signals.len();
        if count > 0 {
            list.counts.granted += count as u64;
            self.len.fetch_sub(count, Ordering::Relaxed);
            waiting.fetch_sub(count, Ordering::Relaxed);
            let threads = signals.iter().filter(|signal| signal.is_thread()).count();
            called.fetch_add(threads as u32, Ordering::SeqCst);
        }
        drop(list);
        Signals::new(signals)
    }

    /// Changes the counts.
    pub(crate) fn count(&self, change: impl FnOnce(&mut WaitCounts)) {
        change(&mut self.list.lock().counts);
    }
}

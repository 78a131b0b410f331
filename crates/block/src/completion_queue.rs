//! A queue of completions that one thread collects: the receiver for many bios in flight.
//!
//! Bios answered in the thread that owns the queue, as those of a [claimed](crate::Claim) device
//! are, go into it without a lock, an allocation or a counter shared between threads. Others are
//! handed over under a lock.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::bio::Completion;
use crate::queue::claim;
use crate::sleep::Event;
use crate::{callback, plug};

/// Collects the completions of bios that were [put in it](crate::Bio::in_queue). Belongs to the
/// thread that made it.
///
/// Dropping it abandons the answers that have not arrived, not the bios.
pub struct CompletionQueue {
    number: u64,
    local: Rc<Local>,
    remote: Arc<Remote>,
}

/// A completion, with what its submitter calls the bio.
#[derive(Debug)]
pub struct Finished {
    /// As given to [`Bio::in_queue`](crate::Bio::in_queue).
    pub cookie: u64,
    /// How the bio ended.
    pub completion: Completion,
}

/// What arrived in the thread that owns the queue.
type Local = RefCell<VecDeque<Finished>>;

/// What arrived in other threads.
#[derive(Default)]
struct Remote {
    arrived: Mutex<VecDeque<Finished>>,
    /// Whether `arrived` holds any; changed under its lock.
    any: AtomicBool,
    event: Event,
}

thread_local! {
    /// The queues of this thread, by number.
    static LOCAL: RefCell<Vec<(u64, Rc<Local>)>> = const { RefCell::new(Vec::new()) };
}

/// The queues of all threads, by number.
static REMOTE: RwLock<Option<HashMap<u64, Arc<Remote>>>> = RwLock::new(None);

/// Delivers a completion to the queue with this number, if it still exists.
pub(crate) fn deliver(number: u64, finished: Finished) {
    let mut finished = Some(finished);
    // A thread that is ending has no queues any more.
    let _ = LOCAL.try_with(|queues| {
        if let Some((_, local)) = queues.borrow().iter().find(|(other, _)| *other == number) {
            local.borrow_mut().extend(finished.take());
        }
    });
    let Some(finished) = finished else { return };
    let remote = REMOTE.read().as_ref().and_then(|queues| queues.get(&number)).map(Arc::clone);
    if let Some(remote) = remote {
        let mut arrived = remote.arrived.lock();
        arrived.push_back(finished);
        remote.any.store(true, Ordering::Release);
        drop(arrived);
        remote.event.notify();
    }
}

impl CompletionQueue {
    /// An empty queue of this thread.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (local, remote) = (Rc::<Local>::default(), Arc::<Remote>::default());
        LOCAL.with_borrow_mut(|queues| queues.push((number, Rc::clone(&local))));
        REMOTE.write().get_or_insert_default().insert(number, Arc::clone(&remote));
        Self { number, local, remote }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// A completion that has arrived. Collects what has ended in the queues that this thread has
    /// claimed, if none has; does not wait, and does not flush plugs.
    #[must_use]
    pub fn poll(&self) -> Option<Finished> {
        self.take().or_else(|| {
            claim::poll();
            self.take()
        })
    }

    /// Moves every completion that has arrived to the end of `finished`, as [`poll`](Self::poll)
    /// would give them one by one; returns how many.
    pub fn poll_all(&self, finished: &mut VecDeque<Finished>) -> usize {
        let before = finished.len();
        if self.local.borrow().is_empty() && !self.remote.any.load(Ordering::Acquire) {
            claim::poll();
        }
        finished.extend(self.take_remote());
        finished.append(&mut self.local.borrow_mut());
        finished.len() - before
    }

    /// Sleeps until a completion has arrived; flushes the plugs of this thread first. A bio must be
    /// on its way, or it sleeps for ever. Must not be called in a completion callback.
    #[must_use]
    pub fn wait(&self) -> Finished {
        debug_assert!(!callback::is_running(), "a completion callback must not wait");
        plug::flush_thread();
        self.remote.event.wait_until(|| self.poll())
    }

    fn take(&self) -> Option<Finished> {
        let first = self.local.borrow_mut().pop_front();
        if first.is_some() || !self.remote.any.load(Ordering::Acquire) {
            return first;
        }
        let mut arrived = self.take_remote();
        let first = arrived.pop_front();
        self.local.borrow_mut().append(&mut arrived);
        first
    }

    /// What arrived in other threads.
    fn take_remote(&self) -> VecDeque<Finished> {
        if !self.remote.any.load(Ordering::Acquire) {
            return VecDeque::new();
        }
        let mut arrived = self.remote.arrived.lock();
        self.remote.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *arrived)
    }
}

impl Default for CompletionQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompletionQueue").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        let _ = LOCAL.try_with(|queues| {
            queues.borrow_mut().retain(|(other, _)| *other != self.number);
        });
        if let Some(queues) = &mut *REMOTE.write() {
            queues.remove(&self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bio, Buffer, Sector};

    #[test]
    fn completions_arrive_from_this_thread_and_from_others() {
        let queue = CompletionQueue::new();
        Bio::flush().in_queue(&queue, 1).succeed();
        assert_eq!(queue.poll().map(|finished| finished.cookie), Some(1));
        assert!(queue.poll().is_none());
        let bio = Bio::read(Sector(8), Buffer::zeroed(512)).in_queue(&queue, 2);
        let thread = std::thread::spawn(move || drop(bio));
        let Finished { cookie, completion } = queue.wait();
        assert_eq!((cookie, completion.sector), (2, Sector(8)));
        assert!(completion.result.is_err(), "abandoned");
        thread.join().unwrap();
    }

    #[test]
    fn a_queue_that_is_gone_takes_no_answers() {
        let queue = CompletionQueue::new();
        let other = CompletionQueue::new();
        let bio = Bio::flush().in_queue(&queue, 1);
        drop(queue);
        bio.succeed();
        assert!(other.poll().is_none());
    }
}

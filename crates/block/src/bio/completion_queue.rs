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

use super::body::Bio;
use super::completion::Completion;
use super::error::BlockError;
use crate::threads::{Event, own_queues, role};

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

/// A bio that ended, as it lies in the queue.
pub(crate) struct Arrived {
    cookie: u64,
    bio: Bio,
    result: Result<(), BlockError>,
}

impl Arrived {
    /// `bio`, whose receiver was taken, and which ended with `result`.
    #[inline]
    pub(crate) fn new(cookie: u64, bio: Bio, result: Result<(), BlockError>) -> Self {
        Self { cookie, bio, result }
    }

    #[inline]
    fn finished(self) -> Finished {
        Finished { cookie: self.cookie, completion: self.bio.into_completion(self.result) }
    }
}

/// What arrived in the thread that owns the queue.
type Local = RefCell<VecDeque<Arrived>>;

/// What arrived in other threads.
#[derive(Default)]
struct Remote {
    arrived: Mutex<VecDeque<Arrived>>,
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

/// Delivers a bio that ended to the queue with this number, if it still exists.
#[inline]
pub(crate) fn deliver(number: u64, arrived: Arrived) {
    match local(number) {
        Some(local) => local.borrow_mut().push_back(arrived),
        None => deliver_elsewhere(number, arrived),
    }
}

/// The queue of this thread with this number.
fn local(number: u64) -> Option<Rc<Local>> {
    let find = |queues: &RefCell<Vec<(u64, Rc<Local>)>>| {
        let queues = queues.borrow();
        let found = queues.iter().find(|(other, _)| *other == number);
        found.map(|(_, local)| Rc::clone(local))
    };
    // A thread that is ending has no queues any more.
    LOCAL.try_with(find).ok().flatten()
}

/// The same, for the queue of another thread.
#[cold]
fn deliver_elsewhere(number: u64, one: Arrived) {
    let remote = REMOTE.read().as_ref().and_then(|queues| queues.get(&number)).map(Arc::clone);
    if let Some(remote) = remote {
        let mut arrived = remote.arrived.lock();
        arrived.push_back(one);
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

    /// A completion that has arrived. Collects requests that have ended in the queues that this
    /// thread has claimed, if none has arrived; does not wait, and does not flush plugs.
    #[must_use]
    pub fn poll(&self) -> Option<Finished> {
        self.take().or_else(|| {
            own_queues::poll();
            self.take()
        })
    }

    /// Gives `take` every completion that has arrived, as [`poll`](Self::poll) would one by one;
    /// returns how many. What arrives meanwhile is left for the next call.
    pub fn poll_each(&self, mut take: impl FnMut(Finished)) -> usize {
        if self.local.borrow().is_empty() && !self.remote.any.load(Ordering::Acquire) {
            own_queues::poll();
        }
        self.bring_remote();
        let count = self.local.borrow().len();
        for _ in 0..count {
            // Not borrowed during the call, which may submit more.
            let Some(arrived) = self.local.borrow_mut().pop_front() else { break };
            take(arrived.finished());
        }
        count
    }

    /// Sleeps until a completion has arrived; flushes the plugs of this thread first. A bio must be
    /// on its way, or it sleeps for ever. Must not be called in a completion callback.
    #[must_use]
    pub fn wait(&self) -> Finished {
        debug_assert!(!role::is_in_callback(), "a completion callback must not wait");
        self.remote.event.wait_unplugged(|| self.take())
    }

    fn take(&self) -> Option<Finished> {
        let mut first = self.local.borrow_mut().pop_front();
        if first.is_none() {
            self.bring_remote();
            first = self.local.borrow_mut().pop_front();
        }
        first.map(Arrived::finished)
    }

    /// Moves what arrived in other threads to the end of what arrived here.
    fn bring_remote(&self) {
        if self.remote.any.load(Ordering::Acquire) {
            let mut arrived = self.remote.arrived.lock();
            self.remote.any.store(false, Ordering::Relaxed);
            self.local.borrow_mut().append(&mut arrived);
        }
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
    use crate::memory::Buffer;
    use crate::units::Sector;

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

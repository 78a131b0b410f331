//! Run to completion: a submitter that drives a hardware queue of its own.
//!
//! A thread that claims a device gets a hardware queue and a driver queue for itself. Its requests
//! go to the driver in the same call, and it collects the completions itself: whenever it sleeps in
//! this crate, and when it polls a [`CompletionQueue`](crate::CompletionQueue). Nothing is handed
//! to another thread, and no counter or lock is shared with one, unless the options of the device
//! ask for it (order of overlaps, shared tags, placement).

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use crate::request::RequestList;
use crate::threads::{OwnQueue, own_queues, plugged};

/// A hardware queue that this thread has claimed.
pub(crate) trait Claimed: OwnQueue {
    /// Which leaf it belongs to.
    fn leaf(&self) -> usize;

    /// Starts `requests`; waits for tags and room if this thread may.
    fn submit(&self, requests: &mut RequestList);

    /// Answers everything and gives the hardware queue back.
    fn release(&self);
}

thread_local! {
    /// By leaf.
    static CLAIMED: RefCell<Vec<(usize, Rc<dyn Claimed>)>> = const { RefCell::new(Vec::new()) };
}

/// This thread's queue for a leaf.
pub(crate) fn find(leaf: usize) -> Option<Rc<dyn Claimed>> {
    let found = CLAIMED.try_with(|claimed| {
        let claimed = claimed.borrow();
        claimed.iter().find(|(other, _)| *other == leaf).map(|(_, queue)| Rc::clone(queue))
    });
    found.ok().flatten()
}

/// Hardware queues that the thread which made this drives itself, until it is dropped. From
/// [`BlockDevice::claim`](crate::BlockDevice::claim).
///
/// Dropping it waits until everything that the thread submitted to them has been answered.
#[must_use = "dropping a claim gives the hardware queue back"]
pub struct Claim {
    queues: Vec<Rc<dyn Claimed>>,
    /// Belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Claim {
    /// A claim of no queue.
    pub(crate) fn new() -> Self {
        Self { queues: Vec::new(), _thread: PhantomData }
    }

    /// Adds the queues of `other`.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.queues.append(&mut other.queues);
    }

    /// Makes `queue` known to this thread.
    pub(crate) fn of(queue: Rc<dyn Claimed>) -> Self {
        own_queues::add(Rc::clone(&queue) as _);
        CLAIMED.with_borrow_mut(|claimed| claimed.push((queue.leaf(), Rc::clone(&queue))));
        Self { queues: vec![queue], _thread: PhantomData }
    }

    /// Number of leaves claimed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether the device had no leaf to claim, or this thread had claimed them all before.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Claim").field("queues", &self.queues.len()).finish_non_exhaustive()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        plugged::send();
        for queue in &self.queues {
            queue.release();
            let gone = CLAIMED.try_with(|claimed| {
                claimed.borrow_mut().retain(|(_, other)| !Rc::ptr_eq(other, queue));
            });
            let removed = own_queues::remove(&(Rc::clone(queue) as _));
            debug_assert!(
                (gone.is_ok() && removed) || std::thread::panicking(),
                "claims end with their thread"
            );
        }
    }
}

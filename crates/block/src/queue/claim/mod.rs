//! Run to completion: a submitter that drives a hardware queue of its own.
//!
//! A thread that claims a device gets a hardware queue and a driver queue for itself. What it
//! submits goes to the driver in the same call, and it collects the completions itself: whenever it
//! sleeps in this crate, and when it polls a [`CompletionQueue`](crate::CompletionQueue). Nothing
//! is handed to another thread, and no counter or lock is shared with one, unless the options of
//! the device ask for it (order of overlaps, shared tags, placement).

mod claimed_queue;

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

pub(super) use claimed_queue::ClaimedQueue;

use super::{RequestList, several};
use crate::sleep::Alarm;

/// A hardware queue that this thread has claimed.
pub(crate) trait Claimed {
    /// Which leaf it belongs to.
    fn leaf(&self) -> usize;

    /// Starts `requests`; waits for tags and room if this thread may.
    fn submit(&self, requests: &mut RequestList);

    /// Whether something submitted by this thread has not ended.
    fn is_busy(&self) -> bool;

    /// Collects what has ended and starts what waits; with patience, sleeps until one of them
    /// happens or `alarm` is rung. May return early for no reason.
    fn step(&self, alarm: &Arc<Alarm>, patience: Patience);

    /// Announces that this thread is going to sleep for several queues, until `event` is readable or
    /// the time has come that this returns, if it does. An error, if there is something to do.
    fn fall_asleep(
        &self,
        alarm: &Arc<Alarm>,
        event: BorrowedFd<'_>,
    ) -> Result<Option<Instant>, Busy>;

    /// Takes the announcement back.
    fn is_awake(&self, alarm: &Arc<Alarm>);

    /// Answers everything and gives the hardware queue back.
    fn release(&self);
}

/// There is something to do in a queue.
pub(crate) struct Busy;

/// How long a step may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It does not wait.
    None,
    /// As long as it takes.
    Unlimited,
}

thread_local! {
    /// By leaf.
    static CLAIMED: RefCell<Vec<(usize, Rc<dyn Claimed>)>> = const { RefCell::new(Vec::new()) };
    /// Whether what is submitted may wait for the next step of this thread.
    static DEFERS: Cell<bool> = const { Cell::new(false) };
    /// Whether something waits for it.
    static DEFERRED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `submit`, for a thread that waits afterwards: what it submits to the thread's own queues
/// leaves with the call in which the thread sleeps, or with [`send_deferred`].
pub(crate) fn defer(submit: impl FnOnce()) {
    struct Undo(bool);
    impl Drop for Undo {
        fn drop(&mut self) {
            DEFERS.set(self.0);
        }
    }
    let _undo = Undo(DEFERS.replace(true));
    submit();
}

/// Sends what was [deferred](defer) and did not leave with a step.
pub(crate) fn send_deferred() {
    if DEFERRED.get() {
        step(&Alarm::current(), Patience::None);
    }
}

/// This thread's queue for a leaf.
pub(super) fn find(leaf: usize) -> Option<Rc<dyn Claimed>> {
    let found = CLAIMED.try_with(|claimed| {
        let claimed = claimed.borrow();
        claimed.iter().find(|(other, _)| *other == leaf).map(|(_, queue)| Rc::clone(queue))
    });
    found.ok().flatten()
}

/// Does one step of this thread's queues, sleeping at most as long as `alarm` stays silent.
/// Returns whether there was one to wait for.
pub(crate) fn step(alarm: &Arc<Alarm>, patience: Patience) -> bool {
    DEFERRED.set(false);
    let busy: Vec<Rc<dyn Claimed>> = CLAIMED
        .try_with(|claimed| {
            let claimed = claimed.borrow();
            claimed
                .iter()
                .map(|(_, queue)| queue)
                .filter(|queue| queue.is_busy())
                .cloned()
                .collect()
        })
        .unwrap_or_default();
    match &busy[..] {
        [] => return false,
        [queue] => queue.step(alarm, patience),
        several => {
            let look = || several.iter().for_each(|queue| queue.step(alarm, Patience::None));
            look();
            if patience != Patience::None && several.iter().all(|queue| queue.is_busy()) {
                several::sleep(several, alarm);
                look();
            }
        }
    }
    true
}

/// Collects what has ended in this thread's queues.
pub(crate) fn poll() {
    let idle = CLAIMED.try_with(|claimed| claimed.borrow().is_empty()).unwrap_or(true);
    if !idle {
        step(&Alarm::current(), Patience::None);
    }
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
    pub(super) fn of(queue: Rc<dyn Claimed>) -> Self {
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
        crate::plug::flush_thread();
        for queue in &self.queues {
            queue.release();
            let gone = CLAIMED.try_with(|claimed| {
                claimed.borrow_mut().retain(|(_, other)| !Rc::ptr_eq(other, queue));
            });
            debug_assert!(gone.is_ok() || std::thread::panicking(), "claims end with their thread");
        }
    }
}

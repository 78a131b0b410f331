//! The queues that this thread drives itself: it collects what ends in them whenever it sleeps, and
//! when it looks for completions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use super::alarm::Alarm;
use super::own_queue::{OwnQueue, WaitLimit};
use super::several;

thread_local! {
    static QUEUES: RefCell<Vec<Rc<dyn OwnQueue>>> = const { RefCell::new(Vec::new()) };
    /// Whether requests submitted may wait for the next step of this thread.
    static DEFERS: Cell<bool> = const { Cell::new(false) };
    /// Whether something waits for it.
    static DEFERRED: Cell<bool> = const { Cell::new(false) };
}

/// Has this thread drive `queue` from now on.
pub(crate) fn add(queue: Rc<dyn OwnQueue>) {
    QUEUES.with_borrow_mut(|queues| queues.push(queue));
}

/// Ends what [`add`] began. Returns whether the thread still had queues: one that ends has none.
pub(crate) fn remove(queue: &Rc<dyn OwnQueue>) -> bool {
    let remove = |queues: &RefCell<Vec<Rc<dyn OwnQueue>>>| {
        queues.borrow_mut().retain(|other| !Rc::ptr_eq(other, queue));
    };
    QUEUES.try_with(remove).is_ok()
}

/// Whether this thread drives hardware queues of its own ([`Claim`](crate::Claim)): its requests
/// are answered only when it looks, so no other thread should wait for them.
#[must_use]
pub fn drives_queues() -> bool {
    QUEUES.try_with(|queues| !queues.borrow().is_empty()).unwrap_or(false)
}

/// Calls `submit`, for a thread that waits afterwards: requests that it submits to the thread's own
/// queues leave with the call in which the thread sleeps, or with [`send_deferred`].
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

/// Sends requests that were [deferred](defer) and did not leave with a step.
pub(crate) fn send_deferred() {
    if DEFERRED.get() {
        step(&Alarm::current(), WaitLimit::None);
    }
}

/// Whether requests submitted now may wait for the next step.
pub(crate) fn defers() -> bool {
    DEFERS.get()
}

/// Records that something was submitted that waits for the next step, if `waits`.
pub(crate) fn deferred(waits: bool) {
    DEFERRED.set(DEFERRED.get() || waits);
}

/// Does one step of this thread's queues, sleeping at most as long as `alarm` stays silent.
/// Returns whether there was one to wait for.
pub(crate) fn step(alarm: &Arc<Alarm>, limit: WaitLimit) -> bool {
    DEFERRED.set(false);
    let busy: Vec<Rc<dyn OwnQueue>> = QUEUES
        .try_with(|queues| {
            let queues = queues.borrow();
            queues.iter().filter(|queue| queue.is_busy()).cloned().collect()
        })
        .unwrap_or_default();
    match &busy[..] {
        [] => return false,
        [queue] => queue.step(alarm, limit),
        several => {
            let look = || several.iter().for_each(|queue| queue.step(alarm, WaitLimit::None));
            look();
            if limit != WaitLimit::None && several.iter().all(|queue| queue.is_busy()) {
                several::sleep(several, alarm);
                look();
            }
        }
    }
    true
}

/// Collects requests that have ended in this thread's queues.
pub(crate) fn poll() {
    let idle = QUEUES.try_with(|queues| queues.borrow().is_empty()).unwrap_or(true);
    if !idle {
        step(&Alarm::current(), WaitLimit::None);
    }
}

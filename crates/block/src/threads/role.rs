//! The role of a thread: one that may have to end a request must not wait for requests.

use std::cell::Cell;

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Declares that this thread answers bios of others.
pub(crate) fn become_worker() {
    IS_WORKER.set(true);
}

/// Records whether this thread runs a completion callback; returns whether it did.
pub(crate) fn set_in_callback(runs: bool) -> bool {
    IN_CALLBACK.replace(runs)
}

/// Whether this thread is inside a callback, where waiting for a completion could wait for itself.
pub(crate) fn is_in_callback() -> bool {
    IN_CALLBACK.get()
}

/// Whether this thread may wait for room in a queue: not if it may have to make the room itself, as
/// a thread that drives a queue for others, or in a completion callback.
pub(crate) fn may_wait() -> bool {
    !IS_WORKER.get() && !IN_CALLBACK.get()
}

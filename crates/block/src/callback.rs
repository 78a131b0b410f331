//! Runs completion callbacks without nesting.
//!
//! A callback may submit the next bio of a chain, and a driver that runs to completion would then
//! call the next callback from inside this one, as deep as the chain is long. Here a callback that
//! is due while another runs in the same thread is queued and runs when that one has returned, so
//! the stack stays flat.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::bio::Completion;

type Callback = Box<dyn FnOnce(Completion) + Send>;

thread_local! {
    static RUNNING: Cell<bool> = const { Cell::new(false) };
    static DUE: RefCell<VecDeque<(Callback, Completion)>> = const { RefCell::new(VecDeque::new()) };
}

/// Calls `callback` with `completion`: now, or after the callback that this thread is running.
///
/// When callbacks panic, the others still run; then the first panic goes on.
pub(crate) fn run(callback: Callback, completion: Completion) {
    if RUNNING.get() {
        DUE.with_borrow_mut(|due| due.push_back((callback, completion)));
        return;
    }
    RUNNING.set(true);
    let mut panic = None;
    let mut next = Some((callback, completion));
    while let Some((callback, completion)) = next {
        let outcome = catch_unwind(AssertUnwindSafe(|| callback(completion)));
        panic = panic.or(outcome.err());
        next = DUE.with_borrow_mut(VecDeque::pop_front);
    }
    RUNNING.set(false);
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

/// Whether this thread is inside a callback, where waiting for a completion could wait for itself.
pub(crate) fn is_running() -> bool {
    RUNNING.get()
}

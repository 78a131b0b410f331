//! Runs completion callbacks without nesting.
//!
//! A callback may submit the next bio of a chain, and a driver that runs to completion would then
//! call the next callback from inside this one, as deep as the chain is long. Here a callback that
//! is due while another runs in the same thread is queued and runs when that one has returned, so
//! the stack stays flat.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::body::{Bio, Interceptor};
use super::completion::Completion;
use super::error::BlockError;
use crate::threads::role;

/// A callback and its arguments.
pub(crate) enum Due {
    /// The receiver of a bio.
    Callback(Box<dyn FnOnce(Completion) + Send>, Completion),
    /// A device that the bio passed.
    Interceptor(Interceptor, Bio, Result<(), BlockError>),
}

impl Due {
    fn call(self) {
        match self {
            Self::Callback(callback, completion) => callback(completion),
            Self::Interceptor(interceptor, bio, result) => interceptor(bio, result),
        }
    }
}

thread_local! {
    static DUE: RefCell<VecDeque<Due>> = const { RefCell::new(VecDeque::new()) };
}

/// Makes the call that is due: now, or after the callback that this thread is running.
///
/// When callbacks panic, the others still run; then the first panic goes on.
pub(crate) fn run(due: Due) {
    if role::set_in_callback(true) {
        DUE.with_borrow_mut(|waiting| waiting.push_back(due));
        return;
    }
    let mut panic = None;
    let mut next = Some(due);
    while let Some(due) = next {
        let outcome = catch_unwind(AssertUnwindSafe(|| due.call()));
        panic = panic.or(outcome.err());
        next = DUE.with_borrow_mut(VecDeque::pop_front);
    }
    role::set_in_callback(false);
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use crate::bio::Bio;

    #[test]
    fn a_callback_in_a_callback_runs_after_it() {
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let inner = Arc::clone(&order);
        let outer = Arc::clone(&order);
        Bio::flush()
            .on_complete(move |_| {
                Bio::flush().on_complete(move |_| inner.lock().push("inner")).succeed();
                outer.lock().push("outer");
            })
            .succeed();
        assert_eq!(*order.lock(), ["outer", "inner"]);
    }

    #[test]
    fn a_panic_does_not_lose_the_callbacks_behind_it() {
        let ran = Arc::new(AtomicU32::new(0));
        let behind = Arc::clone(&ran);
        let outcome = std::panic::catch_unwind(move || {
            Bio::flush()
                .on_complete(move |_| {
                    let count = move |_| behind.store(1, Ordering::Relaxed);
                    Bio::flush().on_complete(count).succeed();
                    panic!("a defect of a caller");
                })
                .succeed();
        });
        assert!(outcome.is_err());
        assert_eq!(ran.load(Ordering::Relaxed), 1);
        assert!(!super::role::is_in_callback());
    }
}

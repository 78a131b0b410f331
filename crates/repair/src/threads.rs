//! Work on numbered items by all processors.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::error::RepairError;

/// Most threads: each has buffers of its own.
const MOST_THREADS: usize = 8;

/// Calls `work` for each of `count` items, in as many threads as there are processors.
pub(crate) fn each<S: Send>(
    count: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Result<(), RepairError> + Sync,
) -> Result<Vec<S>, RepairError> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = start();
        loop {
            let item = next.fetch_add(1, Ordering::Relaxed);
            if item >= count {
                return Ok(state);
            }
            if let Err(error) = work(&mut state, item) {
                // The others end, too.
                next.store(count, Ordering::Relaxed);
                return Err(error);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(MOST_THREADS).clamp(1, count.max(1));
    thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut states = vec![run()];
        for other in others {
            match other.join() {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states.into_iter().collect()
    })
}

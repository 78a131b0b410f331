//! Work on numbered items in a few threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` for each of `count` items, in `threads` threads that each have a state of their own
/// from `start`; returns the states.
pub(super) fn for_each<S: Send>(
    threads: usize,
    count: usize,
    start: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut state = start();
        loop {
            let item = next.fetch_add(1, Ordering::Relaxed);
            if item >= count {
                return state;
            }
            work(&mut state, item);
        }
    };
    let threads = threads.clamp(1, count.max(1));
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut states = vec![run()];
        for other in others {
            match other.join() {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_item_is_done_once() {
        for (threads, count) in [(1, 0), (1, 10), (3, 100), (8, 2)] {
            let states = super::for_each(threads, count, Vec::new, Vec::push);
            let mut all: Vec<_> = states.into_iter().flatten().collect();
            all.sort_unstable();
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}

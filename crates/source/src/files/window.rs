//! Results of many threads in the order of the work, within bounded memory.
//!
//! Work is cut into numbered batches. A thread that works on a batch pushes results to the batch's own
//! queue; the consumer empties the queue of the oldest batch. At most [`BATCHES`] batches are open,
//! and a queue takes no more once it holds [`QUEUE_WEIGHT`] bytes, so that at most their product waits.
//! The oldest batch never waits for another one: its queue is the one being emptied. So nothing deadlocks.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// Most batches that are begun and not yet consumed.
pub(crate) const BATCHES: usize = 16;
/// Bytes in one batch's queue at which its thread waits, unless the queue is empty.
pub(crate) const QUEUE_WEIGHT: usize = 4 * 1024 * 1024;

/// The queues between threads and consumer.
pub(crate) struct Window<T> {
    state: Mutex<State<T>>,
    /// There may be room for a batch.
    vacancy: Condvar,
    /// There may be room in a queue that a thread found full.
    room: Condvar,
    /// The oldest batch may have results, or there are none to come.
    ready: Condvar,
}

struct State<T> {
    /// Number of the oldest batch in `open`.
    oldest: u64,
    open: VecDeque<Batch<T>>,
    ended: bool,
    stopped: bool,
}

struct Batch<T> {
    results: Vec<T>,
    weight: usize,
    /// Its thread waits for room.
    full: bool,
    finished: bool,
}

impl<T> Window<T> {
    pub(crate) fn new() -> Self {
        let state = State { oldest: 0, open: VecDeque::new(), ended: false, stopped: false };
        let (vacancy, room, ready) = Default::default();
        Self { state: Mutex::new(state), vacancy, room, ready }
    }

    /// Opens the next batch, waiting for room. `None` when the consumer is gone.
    pub(crate) fn open_batch(&self) -> Option<u64> {
        let mut state = self.state.lock();
        while state.open.len() >= BATCHES && !state.stopped {
            self.vacancy.wait(&mut state);
        }
        if state.stopped {
            return None;
        }
        state.open.push_back(Batch {
            results: Vec::new(),
            weight: 0,
            full: false,
            finished: false,
        });
        Some(state.oldest + state.open.len() as u64 - 1)
    }

    /// Adds results of `weight` bytes to an open batch, waiting for room, and with `finished` closes
    /// it. `false` when the consumer is gone.
    pub(crate) fn push(&self, batch: u64, results: Vec<T>, weight: usize, finished: bool) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return false;
            }
            // An open batch is at or after the oldest: the consumer drops only finished ones.
            let index = (batch - state.oldest) as usize;
            let State { open, .. } = &mut *state;
            let queue = &mut open[index];
            if queue.results.is_empty() || queue.weight + weight <= QUEUE_WEIGHT {
                if queue.results.is_empty() {
                    queue.results = results;
                } else {
                    queue.results.extend(results);
                }
                queue.weight += weight;
                queue.finished = finished;
                if index == 0 {
                    self.ready.notify_one();
                }
                return true;
            }
            queue.full = true;
            self.room.wait(&mut state);
        }
    }

    /// Says that no batches will be opened any more.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.ready.notify_one();
    }

    /// The next results in order; `None` after the last or after [`stop`](Self::stop).
    pub(crate) fn next(&self) -> Option<Vec<T>> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            let ended = state.ended;
            match state.open.front_mut() {
                Some(oldest) if !oldest.results.is_empty() => {
                    oldest.weight = 0;
                    let results = std::mem::take(&mut oldest.results);
                    // Threads of other batches gain nothing by this.
                    if std::mem::take(&mut oldest.full) {
                        self.room.notify_all();
                    }
                    return Some(results);
                }
                Some(oldest) if oldest.finished => {
                    state.open.pop_front();
                    state.oldest += 1;
                    self.vacancy.notify_one();
                }
                None if ended => return None,
                _ => self.ready.wait(&mut state),
            }
        }
    }

    /// Ends all waiting: the consumer is gone or a thread failed.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.vacancy.notify_all();
        self.room.notify_all();
        self.ready.notify_all();
    }

    /// Whether [`stop`](Self::stop) was called.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn results_come_in_the_order_of_batches_from_any_number_of_threads() {
        for threads in [1, 2, 5] {
            let window = Window::new();
            let begin = Mutex::new(());
            let (batches, running) = (100, AtomicU64::new(threads));
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        loop {
                            let guard = begin.lock();
                            let batch = window.open_batch().unwrap();
                            drop(guard);
                            let work = batch < batches;
                            for part in 0..if work { 3 } else { 0 } {
                                window.push(
                                    batch,
                                    vec![(batch, part)],
                                    QUEUE_WEIGHT / 2 + 1,
                                    false,
                                );
                            }
                            window.push(batch, Vec::new(), 0, true);
                            if !work {
                                break;
                            }
                        }
                        if running.fetch_sub(1, Ordering::Relaxed) == 1 {
                            window.end();
                        }
                    });
                }
                let all: Vec<_> = std::iter::from_fn(|| window.next()).flatten().collect();
                let expected = (0..batches).flat_map(|batch| (0..3).map(move |part| (batch, part)));
                assert!(all.into_iter().eq(expected));
            });
        }
    }

    #[test]
    fn a_consumer_that_leaves_wakes_threads_that_wait_for_room() {
        let window = Window::new();
        let batch = window.open_batch().unwrap();
        assert!(window.push(batch, vec![1], QUEUE_WEIGHT, false));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| window.push(batch, vec![2], 1, true));
            window.stop();
            assert!(!waiting.join().unwrap());
        });
        assert!(window.open_batch().is_none());
        assert!(window.next().is_none());
    }
}

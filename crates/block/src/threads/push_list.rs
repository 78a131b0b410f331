//! A list that many threads push to and one thread empties at once, without locks.
//!
//! A push tells whether it is the first since the list was emptied: only then has the thread that
//! empties it to be woken. That thread sleeps after it found nothing. A push that it did not see
//! comes after its look, is the first, and wakes it, which [`Parking`](super::sync::Parking)
//! remembers: no push is slept through. The model checks it.

use crossbeam_queue::SegQueue;

use super::sync::{AtomicBool, Ordering};

/// First in, first out.
pub(crate) struct PushList<T> {
    values: SegQueue<T>,
    /// Whether something was pushed since the list was emptied.
    announced: AtomicBool,
}

impl<T> PushList<T> {
    /// An empty list.
    pub(crate) fn new() -> Self {
        Self { values: SegQueue::new(), announced: AtomicBool::new(false) }
    }

    /// Adds `value`; returns whether it is the first since the list was emptied.
    pub(crate) fn push(&self, value: T) -> bool {
        self.values.push(value);
        // Release: a look that takes the announcement sees the value. A swap even if it is there:
        // the next look takes all announcements until then.
        !self.announced.swap(true, Ordering::AcqRel)
    }

    /// Whether nothing was announced.
    pub(crate) fn is_empty(&self) -> bool {
        !self.announced.load(Ordering::Acquire)
    }

    /// Takes everything out that was announced, oldest first.
    pub(crate) fn take_all(&self) -> Vec<T> {
        // Acquire: see the items pushed before the announcements.
        if self.is_empty() || !self.announced.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        // Items pushed from now on are announced again.
        (0..self.values.len()).map_while(|_| self.values.pop()).collect()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::threads::sync::Parking;

    #[test]
    fn values_come_out_in_order_and_the_first_push_says_so() {
        let list = PushList::new();
        assert!(list.push(1));
        assert!(!list.push(2));
        assert_eq!(list.take_all(), [1, 2]);
        assert!(list.take_all().is_empty());
        assert!(list.push(3), "dropped with the list");
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        const VALUES: u64 = if cfg!(miri) { 50 } else { 20_000 };
        let list = PushList::new();
        let sleeper = Parking::current();
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (list, sleeper) = (&list, sleeper.clone());
                scope.spawn(move || {
                    for value in 0..VALUES {
                        if list.push(thread * VALUES + value) {
                            sleeper.unpark();
                        }
                    }
                });
            }
            let mut last = [None; 3];
            let mut count = 0;
            while count < 3 * VALUES {
                let values = list.take_all();
                if values.is_empty() {
                    sleeper.park(None);
                }
                for value in values {
                    let seen = &mut last[(value / VALUES) as usize];
                    assert!(*seen < Some(value), "the order of each thread is kept");
                    *seen = Some(value);
                    count += 1;
                }
            }
        });
    }
}

#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;
    use crate::threads::sync::Parking;

    #[test]
    fn the_thread_that_empties_the_list_sleeps_through_nothing() {
        // Three threads have too many interleavings for all of them.
        crate::threads::sync::model_with_preemptions(2, || {
            let list = Arc::new(PushList::new());
            let sleeper = Parking::current();
            let pushers: Vec<_> = (0..2)
                .map(|value| {
                    let (list, sleeper) = (Arc::clone(&list), sleeper.clone());
                    thread::spawn(move || {
                        if list.push(value) {
                            sleeper.unpark();
                        }
                    })
                })
                .collect();
            let mut taken = Vec::new();
            while taken.len() < 2 {
                let values = list.take_all();
                if values.is_empty() {
                    sleeper.park(None);
                }
                taken.extend(values);
            }
            taken.sort_unstable();
            assert_eq!(taken, [0, 1]);
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        });
    }
}

//! Wait queues served in turn, each with a count of its own.

use crate::policy::{Policy, Wakes};
use crate::sync::{AtomicU32, AtomicUsize, Ordering};

/// Per queue, the puts that are still missing to a batch; and whose turn it is.
#[derive(Debug)]
pub(super) struct CyclicBatches {
    missing: Box<[AtomicU32]>,
    turn: AtomicUsize,
}

impl CyclicBatches {
    pub(super) fn new(queues: usize) -> Self {
        Self {
            // More than any batch: a count begins with the batch that holds then.
            missing: (0..queues).map(|_| AtomicU32::new(u32::MAX)).collect(),
            turn: AtomicUsize::new(0),
        }
    }

    /// Counts up to `puts` puts for `queue`. Returns how many of them were counted and whether they
    /// completed a batch; its restart is part of the same step.
    fn count(&self, queue: usize, puts: u32, batch: u32) -> (u32, bool) {
        let missing = &self.missing[queue];
        let mut seen = missing.load(Ordering::Acquire);
        loop {
            // The batch may have become smaller since the count began.
            let left = seen.min(batch);
            let counted = puts.min(left);
            let complete = counted == left;
            let next = if complete { batch } else { left - counted };
            match missing.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return (counted, complete),
                Err(now) => seen = now,
            }
        }
    }
}

impl Policy for CyclicBatches {
    /// A batch in turn goes to one queue, so every queue needs one of its own.
    fn most_batch(&self, usable: u32) -> u32 {
        (usable / self.missing.len() as u32).max(1)
    }

    fn freed(&self, wakes: &Wakes<'_>, freed: u32) {
        let queues = self.missing.len();
        let mut left = freed;
        while left > 0 {
            let turn = self.turn.load(Ordering::Acquire);
            let Some(queue) = (turn..turn + queues)
                .map(|queue| queue % queues)
                .find(|queue| wakes.queues.has_waiters(*queue))
            else {
                return;
            };
            let (counted, complete) = self.count(queue, left, wakes.batch);
            left -= counted;
            if !complete {
                continue;
            }
            // When this fails another batch has moved the turn on.
            let _ = self.turn.compare_exchange(
                turn,
                (queue + 1) % queues,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            // The queue may have emptied, or hold only waiters that cannot use a tag now: then the
            // batch is the next queue's.
            let _ = (queue..queue + queues)
                .map(|queue| queue % queues)
                .find(|queue| wakes.in_queue(*queue, wakes.batch) > 0);
        }
    }
}

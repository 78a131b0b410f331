//! Calls at a later time, by one thread for the whole process, started at the first call.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// A call that is due at a time; the number keeps the order of calls of one time.
struct Due {
    time: Instant,
    number: u64,
    call: Box<dyn FnOnce() + Send>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    due: BinaryHeap<Reverse<Due>>,
    calls: u64,
    running: bool,
}

static TIMER: Timer = Timer {
    state: Mutex::new(State { due: BinaryHeap::new(), calls: 0, running: false }),
    changed: Condvar::new(),
};

/// Makes `call` at `time`, in the thread of the timer. It must not block.
///
/// Without a thread (the system may refuse one) the call is made here and now, which is too early
/// but never too late.
pub(crate) fn at(time: Instant, call: impl FnOnce() + Send + 'static) {
    let mut state = TIMER.state.lock();
    if !state.running {
        let thread = std::thread::Builder::new().name("block-timer".into()).spawn(run);
        if thread.is_err() {
            drop(state);
            return call();
        }
        state.running = true;
    }
    state.calls += 1;
    let number = state.calls;
    // The thread sleeps until the first is due.
    let is_first = state.due.peek().is_none_or(|Reverse(first)| time < first.time);
    state.due.push(Reverse(Due { time, number, call: Box::new(call) }));
    drop(state);
    if is_first {
        TIMER.changed.notify_one();
    }
}

/// The life of the thread.
fn run() {
    let mut state = TIMER.state.lock();
    loop {
        let Some(Reverse(first)) = state.due.peek() else {
            TIMER.changed.wait(&mut state);
            continue;
        };
        let time = first.time;
        if time > Instant::now() {
            TIMER.changed.wait_until(&mut state, time);
            continue;
        }
        let due = state.due.pop();
        drop(state);
        if let Some(Reverse(due)) = due {
            // A panic of one call must not take the thread from the others.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(due.call));
        }
        state = TIMER.state.lock();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_come_in_the_order_of_their_times() {
        let (sender, receiver) = mpsc::channel();
        let now = Instant::now();
        for delay in [30, 10, 20] {
            let sender = sender.clone();
            at(now + Duration::from_millis(delay), move || sender.send(delay).unwrap());
        }
        let order: Vec<u64> = receiver.iter().take(3).collect();
        assert_eq!(order, [10, 20, 30]);
        assert!(now.elapsed() >= Duration::from_millis(30));
    }
}

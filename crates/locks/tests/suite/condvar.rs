//! Waiters are woken, all of them, and wait only in order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::ranks::{GROUP, INODE, broken, here};
use undercroft_locks::{CHECKED, Condvar, OrderedMutex, assert_unlocked, with_key};

/// Longer than any of these tests takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);

/// Runs the threads to their end. A waiter that is never woken would hang; here it fails.
fn all_end(work: Vec<Box<dyn FnOnce() + Send>>) {
    let (done, ends) = mpsc::channel();
    let threads = work.len();
    for work in work {
        let done = done.clone();
        thread::spawn(move || {
            work();
            assert_unlocked("the end of a thread");
            done.send(()).expect("the test waits");
        });
    }
    for ended in 0..threads {
        ends.recv_timeout(LONG).unwrap_or_else(|_| panic!("{ended} of {threads} threads ended"));
    }
}

/// A token goes round: each thread waits for its turn, and each notification has one right waiter.
#[test]
fn a_token_goes_round() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 5_000;
    let turn = Arc::new(OrderedMutex::<usize, INODE>::new(0));
    let changed: Arc<[Condvar; THREADS]> = Arc::default();
    let thread = |me: usize| {
        let (turn, changed) = (turn.clone(), changed.clone());
        Box::new(move || {
            for round in 0..ROUNDS {
                let mut turn = turn.lock();
                changed[me].wait_while(&mut turn, |turn| *turn % THREADS != me);
                assert_eq!(*turn, round * THREADS + me);
                *turn += 1;
                // Half of the time after the mutex is free.
                if round % 2 == 0 {
                    drop(turn);
                }
                changed[(me + 1) % THREADS].notify_one();
            }
        }) as Box<dyn FnOnce() + Send>
    };
    all_end((0..THREADS).map(thread).collect());
    assert_eq!(*turn.lock(), THREADS * ROUNDS);
}

/// A queue of two places: both sides wait most of the time, with one notification for each change.
#[test]
fn a_short_queue_carries_everything() {
    const PAIRS: usize = 3;
    const EACH: usize = 10_000;
    #[derive(Default)]
    struct Queue {
        items: OrderedMutex<VecDeque<usize>, INODE>,
        filled: Condvar,
        emptied: Condvar,
        sum: AtomicUsize,
    }
    let queue = Arc::new(Queue::default());
    let mut work: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    for _ in 0..PAIRS {
        let from = queue.clone();
        work.push(Box::new(move || {
            for item in 0..EACH {
                let mut items = from.items.lock();
                from.emptied.wait_while(&mut items, |items| items.len() == 2);
                items.push_back(item);
                from.filled.notify_one();
            }
        }));
        let to = queue.clone();
        work.push(Box::new(move || {
            for _ in 0..EACH {
                let mut items = to.items.lock();
                to.filled.wait_while(&mut items, |items| items.is_empty());
                let item = items.pop_front().expect("one is there");
                drop(items);
                to.emptied.notify_one();
                to.sum.fetch_add(item, Relaxed);
            }
        }));
    }
    all_end(work);
    assert_eq!(queue.sum.load(Relaxed), PAIRS * EACH * (EACH - 1) / 2);
}

/// All wait for a gate, which opens time and again; some give up early and look again.
#[test]
fn all_are_woken_also_among_waiters_that_give_up() {
    const THREADS: usize = 4;
    const ROUNDS: usize = 1_000;
    let state = Arc::new((OrderedMutex::<_, GROUP>::new((0_usize, 0_usize)), Condvar::new()));
    let thread = |me: usize| {
        let state = state.clone();
        Box::new(move || {
            let (lock, changed) = &*state;
            for round in 0..ROUNDS {
                let mut gate = lock.lock();
                gate.1 += 1;
                if gate.1 == THREADS {
                    *gate = (round + 1, 0);
                    changed.notify_all();
                }
                while gate.0 <= round {
                    if me == 0 {
                        changed.wait_for(&mut gate, Duration::from_micros(20));
                    } else {
                        changed.wait(&mut gate);
                    }
                }
            }
        }) as Box<dyn FnOnce() + Send>
    };
    all_end((0..THREADS).map(thread).collect());
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let (lock, changed) = (OrderedMutex::<_, INODE>::new(()), Condvar::new());
    changed.notify_one(); // without a waiter: it is not kept
    let mut guard = lock.lock();
    assert!(changed.wait_for(&mut guard, Duration::from_millis(1)).timed_out());
    assert!(lock.is_locked());
}

#[test]
fn a_wait_that_could_not_take_its_mutex_again_panics_first() {
    if !CHECKED {
        return;
    }
    let (inode, group) = (OrderedMutex::<_, INODE>::new(()), OrderedMutex::<_, GROUP>::new(()));
    let changed = Condvar::new();
    let mut low = inode.lock();
    let (high, held_at) = (group.lock(), here(file!(), line!()));
    let (message, wait_at) = (broken(|| changed.wait(&mut low)), here(file!(), line!()));
    assert!(message.contains(&wait_at) && message.contains(&held_at), "{message}");
    assert!(inode.is_locked(), "the guard has its lock");
    drop(high);
    changed.wait_for(&mut low, Duration::ZERO);
}

#[test]
fn a_mutex_is_taken_again_with_its_key_and_at_the_line_of_the_wait() {
    let [one, two] = [1, 2].map(|_| OrderedMutex::<_, GROUP>::new(()));
    let inode = OrderedMutex::<_, INODE>::new(());
    let changed = Condvar::new();
    let _one = with_key(1, || one.lock());
    let mut last = with_key(2, || two.lock());
    let wait_at = here(file!(), line!() + 1);
    changed.wait_for(&mut last, Duration::ZERO);
    if CHECKED {
        let message = broken(|| inode.lock());
        assert!(message.contains("rank 1 (group), key 2, taken"), "{message}");
        assert!(message.contains(&wait_at), "{message}");
    }
}

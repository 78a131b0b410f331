//! Threads that get, sleep, and put.

use loom::thread;
use undercroft_tags::WakePolicy;

use crate::{EVERY, Holders, POLICIES, model, small, with_queues};

/// `threads` threads each get a tag and put it `rounds` times.
fn rounds(depth: u32, batch: u32, queues: usize, policy: WakePolicy, threads: usize, rounds: u32) {
    let set = with_queues(depth, policy, batch, queues).build().unwrap();
    let holders = Holders::new(depth);
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let mut caller = set.caller();
            let holders = holders.clone();
            thread::spawn(move || {
                for _ in 0..rounds {
                    let tag = caller.get_blocking();
                    holders.hold(tag);
                    caller.put(tag);
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!((set.in_use(), set.waiting()), (0, 0));
}

#[test]
fn one_waiter_for_the_only_tag() {
    for policy in POLICIES {
        model(EVERY, move || {
            let set = small(1, policy, 1);
            let holders = Holders::new(1);
            let mut first = set.caller();
            let tag = first.try_get().unwrap();
            holders.hold(tag);
            let (waiting, held) = (set.clone(), holders.clone());
            let waiter = thread::spawn(move || {
                let tag = waiting.caller().get_blocking();
                held.hold(tag);
                waiting.put(tag);
            });
            first.put(tag);
            waiter.join().unwrap();
            assert_eq!((set.in_use(), set.waiting()), (0, 0));
        });
    }
}

#[test]
fn two_threads_share_one_tag() {
    for policy in POLICIES {
        model(3, move || rounds(1, 1, 1, policy, 2, 2));
    }
}

#[test]
fn three_threads_share_one_tag() {
    model(3, || rounds(1, 1, 1, WakePolicy::Counters, 3, 1));
}

#[test]
fn three_threads_share_two_tags_in_batches_of_two() {
    model(2, || rounds(2, 2, 1, WakePolicy::Counters, 3, 2));
    model(2, || rounds(2, 2, 1, WakePolicy::CyclicBatches, 3, 2));
}

#[test]
fn waiters_stand_in_different_queues() {
    model(2, || rounds(1, 1, 2, WakePolicy::Counters, 3, 1));
    model(2, || rounds(1, 1, 2, WakePolicy::CyclicBatches, 3, 1));
}

#[test]
#[ignore = "hours; run by `cargo xtask soak models`"]
fn three_threads_share_two_tags_deeply() {
    for policy in POLICIES {
        for batch in [1, 2] {
            model(3, move || rounds(2, batch, 1, policy, 3, 2));
        }
    }
}

/// Two tags put at once wake both waiters, though neither put comes again.
#[test]
fn a_batch_wakes_as_many() {
    for policy in POLICIES {
        model(3, move || {
            let set = small(2, policy, 2);
            let mut first = set.caller();
            let mut tags = first.try_get_batch(2);
            if tags.len() == 1 {
                // Words of one bit each: the second tag is in the other word.
                tags = first.try_get_batch(1);
            }
            assert_eq!(set.in_use(), 2);
            let waiters: Vec<_> = (0..2)
                .map(|_| {
                    let mut caller = set.caller();
                    thread::spawn(move || {
                        let tag = caller.get_blocking();
                        caller.put(tag);
                    })
                })
                .collect();
            set.put_batch(tags);
            for waiter in waiters {
                waiter.join().unwrap();
            }
            assert_eq!((set.in_use(), set.waiting()), (0, 0));
        });
    }
}

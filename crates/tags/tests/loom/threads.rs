//! Threads that get, sleep, and put.

use loom::thread;
use undercroft_tags::experiments::WakePolicy;

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

/// Two tags are put and two threads wait; one of them at a time is on its way. Neither puts its tag
/// before both have one: the first must see to the other.
pub(crate) fn two_sleepers_two_puts(queues: usize, at_once: u32) {
    let set =
        with_queues(2, WakePolicy::Counters, 1, queues).threads_at_once(at_once).build().unwrap();
    let holders = Holders::new(2);
    let mut first = set.caller();
    let tags = [first.try_get().unwrap(), first.try_get().unwrap()];
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let mut caller = set.caller();
            let holders = holders.clone();
            thread::spawn(move || {
                let tag = caller.get_blocking();
                holders.hold(tag);
                tag
            })
        })
        .collect();
    for tag in tags {
        set.put(tag);
    }
    for waiter in waiters {
        set.put(waiter.join().unwrap());
    }
    assert_eq!((set.in_use(), set.waiting()), (0, 0));
}

#[test]
fn the_next_is_woken_by_the_one_before() {
    model(3, || two_sleepers_two_puts(1, 1));
    model(2, || two_sleepers_two_puts(2, 1));
    model(2, || two_sleepers_two_puts(1, 2));
}

/// As before, and a third thread takes and puts a tag: wake-ups spared on its account are made
/// good.
#[test]
fn a_tag_taken_in_between_is_put_again() {
    model(2, || {
        let set = with_queues(2, WakePolicy::Counters, 1, 1).build().unwrap();
        let mut first = set.caller();
        let tags = [first.try_get().unwrap(), first.try_get().unwrap()];
        let mut caller = set.caller();
        let waiter = thread::spawn(move || caller.get_blocking());
        set.put(tags[0]);
        let taken = first.try_get();
        set.put(tags[1]);
        // The other tag stays out: the waiter must not count on it.
        let tag = waiter.join().unwrap();
        taken.into_iter().chain([tag]).for_each(|tag| set.put(tag));
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
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

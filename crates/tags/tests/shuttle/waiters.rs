//! Eight waiters on eight tags, and completions within completions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shuttle::{check_pct, check_random, future, thread};
use undercroft_tags::experiments::WakePolicy;
use undercroft_tags::{Attempt, CallbackWait, Tag, TagSet};

const POLICIES: [WakePolicy; 4] =
    [WakePolicy::Counters, WakePolicy::CyclicBatches, WakePolicy::WakeOne, WakePolicy::WakeAll];

/// Executions of each case; `UNDERCROFT_EXECUTIONS` multiplies them for a soak.
fn executions(ordinary: usize) -> usize {
    let factor = std::env::var("UNDERCROFT_EXECUTIONS").ok().and_then(|text| text.parse().ok());
    ordinary * factor.unwrap_or(1)
}

fn check(ordinary: usize, case: impl Fn() + Send + Sync + 'static) {
    let case = Arc::new(case);
    let random = Arc::clone(&case);
    check_random(move || random(), executions(ordinary));
    check_pct(move || case(), executions(ordinary), 3);
}

/// More workers than tags: at any moment eight of sixteen wait. Some waits run out of time, some
/// workers put by batches. So many threads may be on their way at once.
fn sixteen_workers(policy: WakePolicy, at_once: u32) {
    let set = TagSet::builder(8).policy(policy).threads_at_once(at_once).build().unwrap();
    let holders: Arc<Vec<AtomicUsize>> = Arc::new((0..8).map(|_| AtomicUsize::new(0)).collect());
    let workers: Vec<_> = (0..16)
        .map(|worker| {
            let (set, holders) = (set.clone(), Arc::clone(&holders));
            thread::spawn(move || {
                let mut caller = set.caller();
                for round in 0..3 {
                    let tag = if (worker + round) % 5 == 4 {
                        caller.get_timeout(Duration::ZERO)
                    } else {
                        Some(caller.get_blocking())
                    };
                    let Some(tag) = tag else { continue };
                    assert_eq!(holders[tag.index()].fetch_add(1, Ordering::SeqCst), 0);
                    thread::yield_now();
                    holders[tag.index()].fetch_sub(1, Ordering::SeqCst);
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
fn eight_wait_for_eight() {
    for policy in POLICIES {
        check(300, move || sixteen_workers(policy, 1));
    }
    check(300, move || sixteen_workers(WakePolicy::Counters, 3));
}

/// Threads, tasks and callbacks together, with all of them woken in between.
fn all_kinds(policy: WakePolicy) {
    let set = TagSet::builder(8).policy(policy).wait_queues(2).threads_at_once(1).build().unwrap();
    let mut holder = set.caller();
    let tags: Vec<Tag> = std::iter::from_fn(|| holder.try_get()).collect();
    let mut workers = Vec::new();
    for _ in 0..4 {
        let set = set.clone();
        workers.push(thread::spawn(move || {
            let mut caller = set.caller();
            let tag = caller.get_blocking();
            caller.put(tag);
        }));
    }
    for _ in 0..2 {
        let set = set.clone();
        workers.push(thread::spawn(move || {
            future::block_on(async {
                let mut caller = set.caller();
                let tag = caller.get_async().await;
                set.put(tag);
            });
        }));
    }
    for _ in 0..2 {
        let set = set.clone();
        workers.push(thread::spawn(move || {
            let mut caller = set.caller();
            let thread = thread::current();
            let mut attempt = caller.get_or_call(Arc::new(move || thread.unpark()));
            loop {
                match attempt {
                    Attempt::Tag(tag) => break set.put(tag),
                    Attempt::Waiting(wait) => {
                        while !wait.is_woken() {
                            thread::park();
                        }
                        attempt = wait.retry(&mut caller);
                    }
                }
            }
        }));
    }
    let all = set.clone();
    workers.push(thread::spawn(move || {
        all.wake_all();
        all.wake_all();
    }));
    for tag in tags {
        set.put(tag);
    }
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!((set.in_use(), set.waiting()), (0, 0));
}

#[test]
fn threads_tasks_and_callbacks() {
    for policy in POLICIES {
        check(300, move || all_kinds(policy));
    }
}

/// A callback in the middle of a put puts in turn, on the same thread and on others at once; the
/// sleeping threads must all be reached.
fn completion_in_completion(policy: WakePolicy) {
    let set = TagSet::builder(8).policy(policy).threads_at_once(2).build().unwrap();
    let mut holder = set.caller();
    let tags: Vec<Tag> = std::iter::from_fn(|| holder.try_get()).collect();
    let waits: Vec<CallbackWait> = tags[..4]
        .iter()
        .map(|tag| {
            let (inner, tag) = (set.clone(), std::sync::Mutex::new(Some(*tag)));
            let mut caller = set.caller();
            match caller.get_or_call(Arc::new(move || {
                let tag = tag.lock().unwrap().take();
                if let Some(tag) = tag {
                    inner.put(tag);
                }
            })) {
                Attempt::Waiting(wait) => wait,
                Attempt::Tag(_) => panic!("the set is full"),
            }
        })
        .collect();
    let sleepers: Vec<_> = (0..8)
        .map(|_| {
            let set = set.clone();
            thread::spawn(move || {
                let mut caller = set.caller();
                let tag = caller.get_blocking();
                caller.put(tag);
            })
        })
        .collect();
    let putters: Vec<_> = tags[4..]
        .iter()
        .map(|tag| {
            let (set, tag) = (set.clone(), *tag);
            thread::spawn(move || set.put(tag))
        })
        .collect();
    for putter in putters {
        putter.join().unwrap();
    }
    // The dispatchers do not want a tag any more: the one that was woken passes it on.
    drop(waits);
    for sleeper in sleepers {
        sleeper.join().unwrap();
    }
    assert_eq!(set.waiting(), 0);
}

#[test]
fn a_completion_interrupts_a_completion() {
    for policy in POLICIES {
        check(300, move || completion_in_completion(policy));
    }
}

/// Eight sleepers and eight puts; none puts before all have their tag. Batches are of one, so no
/// tag may be left beside a sleeper.
fn eight_keep_their_tags(at_once: u32) {
    let set = TagSet::builder(8).wake_batch(1).threads_at_once(at_once).build().unwrap();
    let mut holder = set.caller();
    let tags: Vec<Tag> = std::iter::from_fn(|| holder.try_get()).collect();
    let sleepers: Vec<_> = (0..8)
        .map(|_| {
            let mut caller = set.caller();
            thread::spawn(move || caller.get_blocking())
        })
        .collect();
    let putters: Vec<_> = tags
        .chunks(2)
        .map(|tags| {
            let (set, tags) = (set.clone(), tags.to_vec());
            thread::spawn(move || tags.into_iter().for_each(|tag| set.put(tag)))
        })
        .collect();
    for putter in putters {
        putter.join().unwrap();
    }
    let tags: Vec<Tag> = sleepers.into_iter().map(|sleeper| sleeper.join().unwrap()).collect();
    assert_eq!((set.in_use(), set.waiting()), (8, 0));
    set.put_all(tags);
}

#[test]
fn no_tag_is_left_beside_a_sleeper() {
    for at_once in [1, 2, 8] {
        check(1000, move || eight_keep_their_tags(at_once));
    }
}

/// Two users on one set.
fn limited(policy: WakePolicy) {
    let set =
        TagSet::builder(8).policy(policy).threads_at_once(1).fair_sharing(true).build().unwrap();
    let users = [set.user(), set.user()];
    let workers: Vec<_> = (0..12)
        .map(|worker| {
            let (set, user) = (set.clone(), users[worker % 2].clone());
            thread::spawn(move || {
                let mut caller = user.caller();
                for _ in 0..2 {
                    let tag = caller.get_blocking();
                    thread::yield_now();
                    set.put(tag);
                }
                if worker == 5 {
                    user.idle();
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    assert_eq!((set.in_use(), set.waiting()), (0, 0));
    assert_eq!((users[0].in_flight(), users[1].in_flight()), (0, 0));
}

#[test]
fn users_with_shares() {
    for policy in POLICIES {
        check(300, move || limited(policy));
    }
}

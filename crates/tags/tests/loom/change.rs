//! Resizes and batches while others wait.

use loom::thread;
use undercroft_tags::TagSet;
use undercroft_tags::experiments::WakePolicy;

use crate::{EVERY, Holders, model};

/// A set that grows wakes its waiters; no put comes.
#[test]
fn growth_wakes_a_waiter() {
    model(EVERY, || {
        let set = TagSet::builder(1).max_depth(2).wait_queues(1).build().unwrap();
        let mut holder = set.caller();
        let first = holder.try_get().unwrap();
        let waiting = set.clone();
        let waiter = thread::spawn(move || {
            let mut caller = waiting.caller();
            let tag = caller.get_blocking();
            assert_ne!(tag, first);
            caller.put(tag);
        });
        set.resize(2).unwrap();
        waiter.join().unwrap();
        holder.put(first);
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

/// A set that shrinks while tags beyond its new depth are in use keeps the waiter's chance, and
/// gives those tags out no more.
#[test]
fn shrinking_loses_no_waiter() {
    model(3, || {
        let set = TagSet::builder(2).wait_queues(1).build().unwrap();
        let holders = Holders::new(2);
        let mut holder = set.caller();
        let tags = [holder.try_get().unwrap(), holder.try_get().unwrap()];
        let mut caller = set.caller();
        let held = holders.clone();
        let waiter = thread::spawn(move || {
            let tag = caller.get_blocking();
            held.hold(tag);
            caller.put(tag);
        });
        let shrink = set.clone();
        let resizer = thread::spawn(move || shrink.resize(1).unwrap());
        for tag in tags {
            holders.hold(tag);
            holder.put(tag);
        }
        waiter.join().unwrap();
        resizer.join().unwrap();
        assert_eq!(set.iter_busy().count(), 0);
        let only = holder.try_get().unwrap();
        assert_eq!((only.number(), holder.try_get()), (0, None));
        holder.put(only);
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

/// Two callers that get runs at the same time never share a tag and lose none.
#[test]
fn runs_do_not_overlap() {
    model(EVERY, || {
        let set = TagSet::builder(3).wait_queues(1).build().unwrap();
        let holders = Holders::new(3);
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let (set, holders) = (set.clone(), holders.clone());
                let mut caller = set.caller();
                thread::spawn(move || {
                    let tags = caller.try_get_batch(2);
                    for tag in tags.iter() {
                        holders.hold(tag);
                    }
                    assert!(!tags.is_empty(), "three tags are enough for one each");
                    set.put_batch(tags);
                })
            })
            .collect();
        for caller in callers {
            caller.join().unwrap();
        }
        assert_eq!(set.in_use(), 0);
    });
}

/// Reserved tags have waiters of their own: an ordinary put cannot use up their wake-up.
#[test]
fn reserved_tags_wake_reserved_waiters() {
    model(3, || {
        let set = TagSet::builder(2)
            .reserved(1)
            .policy(WakePolicy::Counters)
            .wait_queues(1)
            .build()
            .unwrap();
        let mut keeper = set.caller().for_reserved().unwrap();
        let mut holder = set.caller();
        let (reserved, ordinary) = (keeper.try_get().unwrap(), holder.try_get().unwrap());
        assert_eq!((reserved.number(), ordinary.number()), (0, 1));
        let mut waits = set.caller().for_reserved().unwrap();
        let waiter = thread::spawn(move || {
            let tag = waits.get_blocking();
            assert_eq!(tag.number(), 0);
            waits.put(tag);
        });
        let put = set.clone();
        let putter = thread::spawn(move || put.put(ordinary));
        set.put(reserved);
        putter.join().unwrap();
        waiter.join().unwrap();
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

//! Waiters with limits: users of a shared set.

use loom::thread;
use undercroft_tags::TagSet;

use crate::model;

/// A user at the end of its share waits for its own tags, another one for any: both get on, in
/// whichever order tags are put. Depth 8 shared by two is four tags each.
#[test]
fn two_users_wait_for_different_reasons() {
    model(2, || {
        let set = TagSet::builder(8).fair_sharing(true).wait_queues(1).build().unwrap();
        let (large, small) = (set.user(), set.user());
        let (mut many, mut few) = (large.caller(), small.caller());
        let last = few.try_get().unwrap();
        let tags: Vec<_> = std::iter::from_fn(|| many.try_get()).collect();
        assert_eq!((tags.len(), large.in_flight()), (4, 4));
        let waiter = thread::spawn(move || {
            let tag = many.get_blocking();
            many.put(tag);
        });
        let other = thread::spawn(move || {
            let tag = few.get_blocking();
            few.put(tag);
        });
        set.put(tags[0]);
        set.put(last);
        waiter.join().unwrap();
        other.join().unwrap();
        for tag in &tags[1..] {
            set.put(*tag);
        }
        assert_eq!((set.in_use(), large.in_flight(), small.in_flight()), (0, 0, 0));
    });
}

/// The share grows when the other user has nothing to do: no put comes.
#[test]
fn an_idle_user_leaves_its_share() {
    model(3, || {
        let set = TagSet::builder(8).fair_sharing(true).wait_queues(1).build().unwrap();
        let (busy, idle) = (set.user(), set.user());
        let mut short = idle.caller();
        let tag = short.try_get().unwrap();
        short.put(tag);
        let mut many = busy.caller();
        let tags: Vec<_> = std::iter::from_fn(|| many.try_get()).collect();
        assert_eq!(tags.len(), 4);
        let waiter = thread::spawn(move || {
            let tag = many.get_blocking();
            many.put(tag);
        });
        idle.idle();
        waiter.join().unwrap();
        for tag in tags {
            set.put(tag);
        }
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

//! Tags in tag caches, the gate, and waiters that come meanwhile.

use std::time::Duration;

use loom::thread;
use undercroft_tags::TagSet;

use crate::{EVERY, Holders, model};

fn set(depth: u32) -> TagSet {
    TagSet::builder(depth).wait_queues(1).wake_batch(1).build().unwrap()
}

/// The tag is put into the tag cache while another thread comes and waits for it.
pub(crate) fn a_put_into_the_tag_cache() {
    let set = set(1);
    let holders = Holders::new(1);
    let mut caller = set.caller();
    let tag = caller.try_get().unwrap();
    holders.hold(tag);
    let (other, held) = (set.clone(), holders.clone());
    let waiter = thread::spawn(move || {
        let tag = other.caller().get_blocking();
        held.hold(tag);
        other.put(tag);
    });
    caller.put(tag);
    waiter.join().unwrap();
    assert_eq!((set.in_use(), set.waiting()), (0, 0));
}

#[test]
fn a_waiter_finds_the_tag_of_a_tag_cache() {
    model(EVERY, a_put_into_the_tag_cache);
}

/// Owner and another race for the tag in the tag cache; each gets it in the end.
#[test]
fn the_owner_races_for_its_tag_cache() {
    model(3, || {
        let set = set(1);
        let holders = Holders::new(1);
        let mut caller = set.caller();
        let tag = caller.try_get().unwrap();
        caller.put(tag);
        assert_eq!((set.in_use(), set.iter_busy().count()), (0, 0));
        let (other, held) = (set.clone(), holders.clone());
        let waiter = thread::spawn(move || {
            let mut caller = other.caller();
            let tag = caller.get_blocking();
            held.hold(tag);
            caller.put(tag);
        });
        let tag = caller.get_blocking();
        holders.hold(tag);
        caller.put(tag);
        waiter.join().unwrap();
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

/// Two threads wait while two tag caches are full; one of them gives up.
#[test]
fn two_waiters_empty_two_tag_caches() {
    model(2, || {
        let set = set(2);
        let holders = Holders::new(2);
        let mut callers = [set.caller(), set.caller()];
        let tags = [callers[0].try_get().unwrap(), callers[1].try_get().unwrap()];
        let threads: Vec<_> = [true, false]
            .into_iter()
            .map(|patient| {
                let (set, holders) = (set.clone(), holders.clone());
                thread::spawn(move || {
                    let mut caller = set.caller();
                    let tag = if patient {
                        Some(caller.get_blocking())
                    } else {
                        caller.get_timeout(Duration::ZERO)
                    };
                    if let Some(tag) = tag {
                        holders.hold(tag);
                        set.put(tag);
                    }
                })
            })
            .collect();
        for (caller, tag) in callers.iter_mut().zip(tags) {
            holders.hold(tag);
            caller.put(tag);
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

/// The gate opens while another begins to wait: in a model, after two gets in peace.
#[test]
fn the_gate_opens_beside_a_waiter() {
    model(3, || {
        let set = set(2);
        let mut caller = set.caller();
        let tags = [caller.try_get().unwrap(), caller.try_get().unwrap()];
        assert_eq!(caller.try_get(), None);
        for tag in tags {
            set.put(tag);
        }
        // The gate is closed now. Both tags are taken and put again; the second get opens it.
        let other = set.clone();
        let waiter = thread::spawn(move || {
            let mut caller = other.caller();
            let tag = caller.get_blocking();
            other.put(tag);
            let tag = caller.get_blocking();
            other.put(tag);
        });
        for _ in 0..2 {
            let tags = [caller.get_blocking()];
            for tag in tags {
                caller.put(tag);
            }
        }
        waiter.join().unwrap();
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

/// A caller goes with a full tag cache, beside a waiter.
#[test]
fn a_tag_cache_is_emptied_when_its_caller_goes() {
    model(EVERY, || {
        let set = set(1);
        let mut caller = set.caller();
        let tag = caller.try_get().unwrap();
        caller.put(tag);
        let other = set.clone();
        let waiter = thread::spawn(move || {
            let tag = other.caller().get_blocking();
            other.put(tag);
        });
        drop(caller);
        waiter.join().unwrap();
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

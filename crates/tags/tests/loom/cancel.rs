//! Waiters that give up: their wake-up goes to the next (invariant I5).

use std::time::Duration;

use loom::thread;
use undercroft_tags::experiments::WakePolicy;

use crate::{Holders, model, small};

/// One waiter's time runs out while it is woken; the other must not sleep on.
fn timeout_beside_a_waiter(policy: WakePolicy) {
    let set = small(1, policy, 1);
    let holders = Holders::new(1);
    let tag = set.caller().try_get().unwrap();
    let (mut impatient, mut patient) = (set.caller(), set.caller());
    let (put, held) = (set.clone(), holders.clone());
    let first = thread::spawn(move || {
        if let Some(tag) = impatient.get_timeout(Duration::ZERO) {
            held.hold(tag);
            impatient.put(tag);
        }
    });
    let second = thread::spawn(move || {
        let tag = patient.get_blocking();
        holders.hold(tag);
        patient.put(tag);
    });
    put.put(tag);
    first.join().unwrap();
    second.join().unwrap();
    assert_eq!((set.in_use(), set.waiting()), (0, 0));
}

/// One waiter's time runs out while it is woken and a second put relies on it; of two others, which
/// keep their tags, neither must sleep on.
#[test]
fn a_timeout_on_the_way_passes_on_what_was_spared() {
    model(2, || {
        let set = small(2, WakePolicy::Counters, 1);
        let mut first = set.caller();
        let tags = [first.try_get().unwrap(), first.try_get().unwrap()];
        let (mut impatient, mut patient) = (set.caller(), set.caller());
        let one = thread::spawn(move || impatient.get_timeout(Duration::ZERO));
        let other = thread::spawn(move || patient.get_blocking());
        for tag in tags {
            set.put(tag);
        }
        let tag = other.join().unwrap();
        one.join().unwrap().into_iter().chain([tag]).for_each(|tag| set.put(tag));
        assert_eq!((set.in_use(), set.waiting()), (0, 0));
    });
}

#[test]
fn a_timeout_passes_the_wake_up_on() {
    for policy in [WakePolicy::Counters, WakePolicy::CyclicBatches, WakePolicy::WakeOne] {
        model(3, move || timeout_beside_a_waiter(policy));
    }
}

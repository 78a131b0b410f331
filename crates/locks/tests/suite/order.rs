//! The locks that a thread may wait for, and the message when it may not.
#![cfg(any(debug_assertions, feature = "checked"))]

use std::sync::Arc;

use crate::ranks::{GROUP, INODE, JOURNAL, broken, here};
use undercroft_locks::{OrderedMutex, OrderedRwLock, with_key};

#[test]
fn a_lower_rank_after_a_higher_one_panics_with_both_places() {
    let journal = OrderedRwLock::<_, JOURNAL>::new(());
    let inode = OrderedMutex::<_, INODE>::new(());
    let (_held, held_at) = (journal.read(), here(file!(), line!()));
    let (message, wanted_at) = (broken(|| inode.lock()), here(file!(), line!()));
    let (wanted, held) = message.split_once(" while ").expect("both locks");
    assert!(wanted.contains("exclusive lock of rank 0 (inode) wanted at"), "{message}");
    assert!(wanted.contains(&wanted_at), "{message}");
    assert!(held.contains("shared lock of rank 2 (journal) taken at"), "{message}");
    assert!(held.contains(&held_at), "{message}");
    assert!(held.contains("the lowest first"), "{message}");
    drop(inode.try_lock().expect("the lock that was refused is free"));
}

#[test]
#[should_panic(expected = "order of their ranks")]
fn the_panic_reaches_the_test() {
    let (group, inode) = (OrderedMutex::<_, GROUP>::new(()), OrderedMutex::<_, INODE>::new(()));
    let _group = group.lock();
    let _inode = inode.lock();
}

#[test]
fn any_lock_that_is_held_counts_not_only_the_last() {
    let [journal, other] = [1, 2].map(|_| OrderedMutex::<_, JOURNAL>::new(()));
    let (group, inode) = (OrderedMutex::<_, GROUP>::new(()), OrderedMutex::<_, INODE>::new(()));
    let _journal = journal.lock();
    let _inode = inode.try_lock().expect("free");
    assert!(broken(|| group.lock()).contains("rank 2 (journal)"));
    assert!(broken(|| other.lock()).contains("ascending keys"));
}

#[test]
fn ascending_ranks_are_in_order() {
    let inode = OrderedRwLock::<_, INODE>::new(());
    let group = OrderedMutex::<_, GROUP>::new(());
    let journal = OrderedRwLock::<_, JOURNAL>::new(());
    for _ in 0..3 {
        let _inode = inode.write();
        let _group = group.lock();
        let _journal = journal.read();
    }
}

#[test]
fn one_rank_goes_by_keys() {
    let [one, two, three] = [1, 2, 3].map(|key| Arc::new(OrderedRwLock::<_, INODE>::new(key)));
    let _two = with_key(2, || two.write_arc());
    assert!(broken(|| three.write_arc()).contains("ascending keys (with_key)"));
    let message = broken(|| with_key(1, || one.read_arc()));
    assert!(message.contains("rank 0 (inode), key 1, wanted"), "{message}");
    assert!(message.contains("rank 0 (inode), key 2, taken"), "{message}");
    assert!(broken(|| with_key(2, || one.read_arc())).contains("ascending keys"));
    let _three = with_key(3, || three.read_arc());
}

#[test]
fn a_key_is_for_one_lock() {
    let [one, two] = [1, 2].map(|_| OrderedMutex::<_, GROUP>::new(()));
    let message = broken(|| with_key(1, || (one.lock(), two.lock())));
    assert!(message.contains("key 1, taken") && !message.contains(", wanted"), "{message}");
    // The key of a `with_key` that took nothing, or panicked, is gone.
    with_key(1, || ());
    let _one = one.lock();
    assert!(broken(|| two.lock()).contains("exclusive lock of rank 1 (group) wanted"));
}

#[test]
fn keys_nest() {
    let [one, two, three] = [1, 2, 3].map(|_| OrderedMutex::<_, GROUP>::new(()));
    let (_one, _two) = with_key(2, || (with_key(1, || one.lock()), two.lock()));
    let _three = with_key(3, || {
        // An attempt that fails leaves the key to the next.
        assert!(one.try_lock().is_none());
        three.lock()
    });
}

#[test]
fn the_same_lock_twice_panics_also_shared() {
    let (mutex, lock) = (OrderedMutex::<_, INODE>::new(()), OrderedRwLock::<_, GROUP>::new(()));
    let _mutex = with_key(1, || mutex.lock());
    assert!(broken(|| with_key(2, || mutex.lock())).contains("not taken twice"));
    let _shared = lock.read();
    assert!(broken(|| lock.read()).contains("not even shared"));
    let _again = lock.try_read().expect("there is no writer");
    assert!(broken(|| lock.write()).contains("not taken twice"));
}

#[test]
fn attempts_do_not_panic_but_count() {
    let (group, inode) = (OrderedMutex::<_, GROUP>::new(()), OrderedRwLock::<_, INODE>::new(()));
    let held = group.try_lock().expect("free");
    assert!(broken(|| inode.read()).contains("rank 1 (group)"));
    assert!(group.try_lock().is_none() && group.is_locked());
    drop(inode.try_write().expect("free"));
    assert!(!inode.is_locked() && !inode.is_locked_exclusive());
    drop(held);
    drop(inode.read());
}

#[test]
fn locks_are_released_in_any_order() {
    let inode = OrderedMutex::<_, INODE>::new(());
    let group = OrderedMutex::<_, GROUP>::new(());
    let journal = OrderedMutex::<_, JOURNAL>::new(());
    let (low, middle, high) = (inode.lock(), group.lock(), journal.lock());
    drop(middle);
    assert!(broken(|| group.lock()).contains("rank 2 (journal)"));
    drop(high);
    let middle = group.lock();
    drop(low);
    assert!(broken(|| inode.lock()).contains("rank 1 (group)"));
    drop(middle);
    drop(inode.lock());
}

#[test]
fn what_another_thread_holds_does_not_count() {
    let (group, inode) = (OrderedMutex::<_, GROUP>::new(()), OrderedMutex::<_, INODE>::new(()));
    let _group = group.lock();
    std::thread::scope(|scope| scope.spawn(|| drop(inode.lock())).join()).expect("in order");
}

//! Guards of every form, in a list that must be empty when they are gone.

use std::sync::Arc;

use crate::ranks::{GROUP, INODE, broken};
use undercroft_locks::{
    ArcMutexGuard, ArcRwLockReadGuard, ArcRwLockWriteGuard, CHECKED, MappedMutexGuard,
    MappedRwLockReadGuard, MutexGuard, OrderedMutex, OrderedRwLock, RwLockReadGuard,
    RwLockWriteGuard, assert_unlocked,
};

#[test]
fn guards_in_arcs_outlive_the_handles_they_came_from() {
    let mutex = Arc::new(OrderedMutex::<_, INODE>::new(1));
    let lock = Arc::new(OrderedRwLock::<_, GROUP>::new(2));
    let mut exclusive: ArcMutexGuard<i32, INODE> = mutex.lock_arc();
    let shared: ArcRwLockReadGuard<i32, GROUP> = lock.read_arc();
    *exclusive += *shared;
    drop((mutex, lock));
    if CHECKED {
        assert!(broken(|| assert_unlocked("a callback")).contains("a callback"));
    }
    let lock = ArcRwLockReadGuard::rwlock(&shared).clone();
    drop(shared);
    let alone: ArcRwLockWriteGuard<i32, GROUP> = lock.write_arc();
    assert_eq!(*exclusive + *alone, 5);
    drop((exclusive, alone));
    assert_unlocked("the end of the test");
}

#[test]
fn guards_of_parts_hold_the_whole() {
    let mutex = OrderedMutex::<_, INODE>::new((1, 2));
    let lock = OrderedRwLock::<_, GROUP>::new((3, 4));
    let part: MappedMutexGuard<'_, i32, INODE> = MutexGuard::map(mutex.lock(), |pair| &mut pair.1);
    let other: MappedRwLockReadGuard<'_, i32, GROUP> =
        RwLockReadGuard::map(lock.read(), |pair| &pair.0);
    assert_eq!(*part + *other, 5);
    assert!(mutex.is_locked() && lock.is_locked());
    drop((part, other));
    assert_unlocked("the end of the test");
}

#[test]
fn a_writer_becomes_a_reader() {
    let lock = Arc::new(OrderedRwLock::<_, GROUP>::new(1));
    let mut alone = lock.write();
    *alone += 1;
    let shared = RwLockWriteGuard::downgrade(alone);
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    if CHECKED {
        let message = broken(|| lock.write());
        assert!(message.contains("while the shared lock of rank 1 (group) taken at"), "{message}");
    }
    assert_eq!(*shared, 2);
    drop(shared);
    drop(ArcRwLockWriteGuard::downgrade(lock.write_arc()));
    assert_unlocked("the end of the test");
}

#[test]
fn a_panic_of_the_program_releases_what_it_held() {
    let lock = OrderedMutex::<_, INODE>::new(());
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = lock.lock();
        std::panic::resume_unwind(Box::new("a panic"));
    }));
    assert!(panic.is_err());
    assert_unlocked("the end of the test");
    assert!(!lock.is_locked());
}

#[test]
fn locks_are_printed_and_made_as_those_of_parking_lot() {
    let mutex = OrderedMutex::<u8, INODE>::default();
    let text = format!("{mutex:?}");
    assert_eq!(text, format!("{:?}", parking_lot::Mutex::new(0_u8)));
    static LOCK: OrderedRwLock<u8, GROUP> = OrderedRwLock::new(7);
    assert_eq!(*LOCK.read(), 7);
}

#[test]
fn without_checks_every_order_goes() {
    if CHECKED {
        return;
    }
    let (group, inode) = (OrderedMutex::<_, GROUP>::new(()), OrderedRwLock::<_, INODE>::new(()));
    let _group = group.lock();
    assert_unlocked("nothing, which is not looked at");
    let (_inode, _again) = (inode.read(), inode.read());
}

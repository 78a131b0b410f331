//! Locks that a guard sets down and takes again.
#![cfg(any(debug_assertions, feature = "checked"))]

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use crate::ranks::{GROUP, INODE};
use undercroft_locks::{MutexGuard, OrderedMutex, assert_unlocked};

const CHILD: &str = "UNDERCROFT_LOCKS_OUT_OF_ORDER";

/// Runs the test of this thread alone, as a program that it may end. Returns its output.
fn ends() -> String {
    let program = env::current_exe().expect("this program");
    let thread = std::thread::current();
    let test = thread.name().expect("the name of a test");
    let mut command = Command::new(program);
    let output = command.args(["--exact", test]).env(CHILD, "1").output().expect("it runs");
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&output.status),
        Some(6),
        "{output:?}"
    );
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn locks_set_down_are_not_held() {
    let inode = OrderedMutex::<_, INODE>::new(1);
    let group = OrderedMutex::<_, GROUP>::new(());
    let mut held = inode.lock();
    MutexGuard::unlocked(&mut held, || {
        assert_unlocked("the work");
        *inode.lock() += 1;
        drop(group.lock());
    });
    assert_eq!(*held, 2);
    drop(held);
    assert_unlocked("the end of the test");
}

/// A panic would leave a guard that shows and unlocks a lock that it does not hold.
#[test]
fn a_lock_taken_again_out_of_order_ends_the_process() {
    if env::var_os(CHILD).is_none() {
        let said = ends();
        assert!(said.contains("lock order: exclusive lock of rank 0"), "{said}");
        assert!(said.contains("while the exclusive lock of rank 1 taken at"), "{said}");
        return;
    }
    let inode = OrderedMutex::<_, INODE>::new(());
    let group = OrderedMutex::<_, GROUP>::new(());
    let mut held = inode.lock();
    let _caught = catch_unwind(AssertUnwindSafe(|| {
        MutexGuard::unlocked(&mut held, || std::mem::forget(group.lock()));
    }));
}

/// Takes the lock again while the thread unwinds.
struct OnDrop<'a>(&'a OrderedMutex<(), INODE>);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        drop(self.0.lock());
    }
}

#[test]
fn unwinding_goes_on_out_of_order_if_it_can() {
    let inode = OrderedMutex::<_, INODE>::new(());
    let group = OrderedMutex::<_, GROUP>::new(());
    let message = crate::ranks::broken(|| {
        let _group = group.lock();
        let _on_drop = OnDrop(&inode);
        drop(inode.lock());
    });
    assert!(message.contains("rank 1"), "{message}");
    assert_unlocked("the end of the test");
}

#[test]
fn unwinding_into_a_lock_that_is_held_ends_the_process() {
    if env::var_os(CHILD).is_none() {
        let said = ends();
        assert!(said.contains("not taken twice"), "{said}");
        return;
    }
    let inode = OrderedMutex::<_, INODE>::new(());
    let _held = inode.lock();
    let _on_drop = OnDrop(&inode);
    panic!("the first panic");
}

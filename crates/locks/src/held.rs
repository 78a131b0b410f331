//! The locks that the current thread holds.
//!
//! The list is the thread's own: guards do not leave their thread, so a lock is released where it
//! was taken. Every function here does nothing in builds without checks.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::panic::Location;

use crate::CHECKED;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

/// A lock that is held, or wanted.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub(crate) address: usize,
    pub(crate) rank: u8,
    pub(crate) mode: Mode,
    /// Where this lock stands among those of its rank.
    pub(crate) key: Option<u64>,
    /// Where it was taken.
    pub(crate) place: &'static Location<'static>,
}

struct Thread {
    /// In the order of taking. Not dropped with the thread: without a destructor it is there for
    /// locks of other thread-locals that are. Its memory is freed whenever nothing is held.
    held: RefCell<ManuallyDrop<Vec<Held>>>,
    /// The key of the next lock that is taken.
    next_key: Cell<Option<u64>>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread { held: RefCell::new(ManuallyDrop::new(Vec::new())), next_key: Cell::new(None) }
    };
}

/// Takes a lock if that needs no waiting. Returns whether it did.
#[inline]
#[track_caller]
pub(crate) fn attempt(
    address: usize,
    rank: u8,
    mode: Mode,
    acquire: impl FnOnce() -> bool,
) -> bool {
    let acquired = acquire();
    if CHECKED && acquired {
        let key = THREAD.with(|thread| thread.next_key.get());
        Held { address, rank, mode, key, place: Location::caller() }.push();
    }
    acquired
}

/// A lock is about to be released. It is not in the list if its guard was forgotten and another
/// thread unlocks it by force; then there is nothing to do here.
#[inline]
pub(crate) fn released(address: usize) {
    if !CHECKED {
        return;
    }
    THREAD.with(|thread| {
        let mut held = thread.held.borrow_mut();
        // From the end: usually the last; and of two shared ones, either will do.
        if let Some(position) = held.iter().rposition(|lock| lock.address == address) {
            held.remove(position);
        }
        if held.is_empty() {
            drop(std::mem::take(&mut **held));
        }
    });
}

/// A lock that was held alone is now shared.
#[inline]
pub(crate) fn downgraded(address: usize) {
    if CHECKED {
        change(address, |lock| lock.mode = Mode::Shared);
    }
}

/// The lock at this address counts as taken where the caller says.
#[inline]
#[track_caller]
pub(crate) fn taken_here(address: usize) {
    if CHECKED {
        let place = Location::caller();
        change(address, |lock| lock.place = place);
    }
}

/// Runs `take`, and gives this key to the first lock that it takes.
///
/// Locks of one rank may be held together if their keys ascend in the order of taking:
///
/// ```
/// use undercroft_locks::{OrderedMutex, with_key};
///
/// let (five, nine) = (OrderedMutex::<_, 0>::new("5"), OrderedMutex::<_, 0>::new("9"));
/// let first = with_key(5, || five.lock());
/// let second = with_key(9, || nine.lock());
/// # drop((first, second));
/// ```
#[inline]
pub fn with_key<R>(key: u64, take: impl FnOnce() -> R) -> R {
    with_next_key(Some(key), take)
}

/// As [`with_key`], for a lock that may have none.
#[inline]
pub(crate) fn with_next_key<R>(key: Option<u64>, take: impl FnOnce() -> R) -> R {
    /// Puts back the earlier value, also when `take` panics.
    struct Restore(Option<u64>);
    impl Drop for Restore {
        fn drop(&mut self) {
            THREAD.with(|thread| thread.next_key.set(self.0));
        }
    }
    if !CHECKED {
        return take();
    }
    let _restore = Restore(THREAD.with(|thread| thread.next_key.replace(key)));
    take()
}

/// Panics, in builds that check, if this thread holds a lock: for the places from which code is
/// called that is not ours and may take any. `what` is that code, in words.
#[inline]
#[track_caller]
pub fn assert_unlocked(what: &str) {
    if !CHECKED || std::thread::panicking() {
        return; // a second panic would hide the first
    }
    if let Some(lock) = find(|lock| Some(*lock)) {
        panic!("{what}, which may take any lock, is called with the {} still held", lock.taken());
    }
}

impl Held {
    /// Puts the lock into the list; the next one has no key.
    pub(crate) fn push(self) {
        THREAD.with(|thread| {
            thread.next_key.set(None);
            thread.held.borrow_mut().push(self);
        });
    }
}

/// The key of the next lock that is taken.
pub(crate) fn next_key() -> Option<u64> {
    THREAD.with(|thread| thread.next_key.get())
}

/// What `ask` answers for the lock that was taken last of those for which it has an answer. The
/// answer is a copy: a panic that names a lock may run code that changes the list.
pub(crate) fn find<R>(ask: impl Fn(&Held) -> Option<R>) -> Option<R> {
    THREAD.with(|thread| thread.held.borrow().iter().rev().find_map(ask))
}

fn change(address: usize, change: impl FnOnce(&mut Held)) {
    THREAD.with(|thread| {
        let mut held = thread.held.borrow_mut();
        if let Some(lock) = held.iter_mut().rfind(|lock| lock.address == address) {
            change(lock);
        }
    });
}

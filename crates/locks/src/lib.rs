//! Mutexes and reader-writer locks that know their place in the order of locks, and say so when a
//! thread takes them in another.
//!
//! Each lock has a *rank* in its type. A thread that holds a lock takes only locks of higher rank,
//! so no two threads can wait for each other. Debug builds check it, and so do release builds with
//! the feature `checked`: a thread that would block out of order panics, whether or not another
//! thread is there to make a deadlock of it. Without checks ([`CHECKED`]) these are the locks of
//! `parking_lot`: of the same size, with the same code.
//!
//! ```
//! use undercroft_locks::{OrderedMutex, OrderedRwLock, name_ranks};
//!
//! const INODE: u8 = 0;
//! const QUEUE: u8 = 1;
//! name_ranks(&["inode", "queue"]); // once, for messages
//!
//! let inode = OrderedRwLock::<_, INODE>::new(7);
//! let queue = OrderedMutex::<_, QUEUE>::new(Vec::new());
//! let inode = inode.read();
//! queue.lock().push(*inode); // the other way round would panic, naming both lines
//! ```
//!
//! # Rules
//!
//! - Blocking for a lock of rank R panics while the thread holds a lock of a higher rank, however
//!   it got that.
//! - Locks of one rank are taken with ascending keys, which [`with_key`] gives: inode numbers, for
//!   example. Without keys, a thread holds one lock of a rank.
//! - A lock that the thread holds is not taken again, not even shared twice: a writer that waits in
//!   between would stop both.
//! - `try_` methods may do all this, for they do not wait. A lock that they took counts as held.
//!
//! [`assert_unlocked`] is for places from which code is called that may take any lock.
//!
//! Guards stay in the thread that took them, as those of `parking_lot` do. That is what makes a list
//! for each thread a true account of what it holds:
//!
//! ```compile_fail,E0277
//! let lock = undercroft_locks::OrderedMutex::<_, 0>::new(());
//! let guard = lock.lock();
//! std::thread::scope(|scope| _ = scope.spawn(|| drop(guard)));
//! ```
//!
//! # Locks set down for a while
//!
//! [`Condvar`] checks before it sleeps that its mutex may be taken again afterwards. The `unlocked`
//! functions of guards cannot: when the lock they take again is out of order they end the process,
//! because a panic there would leave a guard without its lock.

#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod held;

mod relock;

mod violation;

mod order;

mod raw;

mod condvar;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use held::{assert_unlocked, with_key};
pub use raw::{RawOrderedMutex, RawOrderedRwLock};
pub use violation::name_ranks;

use parking_lot::lock_api;

/// Whether the order of locks is checked in this build.
pub const CHECKED: bool = cfg!(any(debug_assertions, feature = "checked"));

/// A mutex of rank `RANK`.
pub type OrderedMutex<T, const RANK: u8> = lock_api::Mutex<RawOrderedMutex<RANK>, T>;

/// A reader-writer lock of rank `RANK`.
pub type OrderedRwLock<T, const RANK: u8> = lock_api::RwLock<RawOrderedRwLock<RANK>, T>;

/// Holds an [`OrderedMutex`].
pub type MutexGuard<'a, T, const RANK: u8> = lock_api::MutexGuard<'a, RawOrderedMutex<RANK>, T>;

/// Holds an [`OrderedMutex`], and shows a part of what it protects.
pub type MappedMutexGuard<'a, T, const RANK: u8> =
    lock_api::MappedMutexGuard<'a, RawOrderedMutex<RANK>, T>;

/// Holds an [`OrderedMutex`] in an `Arc`.
pub type ArcMutexGuard<T, const RANK: u8> = lock_api::ArcMutexGuard<RawOrderedMutex<RANK>, T>;

/// Holds an [`OrderedRwLock`] with other readers.
pub type RwLockReadGuard<'a, T, const RANK: u8> =
    lock_api::RwLockReadGuard<'a, RawOrderedRwLock<RANK>, T>;

/// Holds an [`OrderedRwLock`] with other readers, and shows a part of what it protects.
pub type MappedRwLockReadGuard<'a, T, const RANK: u8> =
    lock_api::MappedRwLockReadGuard<'a, RawOrderedRwLock<RANK>, T>;

/// Holds an [`OrderedRwLock`] alone.
pub type RwLockWriteGuard<'a, T, const RANK: u8> =
    lock_api::RwLockWriteGuard<'a, RawOrderedRwLock<RANK>, T>;

/// Holds an [`OrderedRwLock`] in an `Arc` with other readers.
pub type ArcRwLockReadGuard<T, const RANK: u8> =
    lock_api::ArcRwLockReadGuard<RawOrderedRwLock<RANK>, T>;

/// Holds an [`OrderedRwLock`] in an `Arc` alone.
pub type ArcRwLockWriteGuard<T, const RANK: u8> =
    lock_api::ArcRwLockWriteGuard<RawOrderedRwLock<RANK>, T>;

// What is checked is known from the address and the type of a lock: it carries nothing, in any build.
const _: () = assert!(size_of::<OrderedMutex<u8, 0>>() == size_of::<parking_lot::Mutex<u8>>());
const _: () = assert!(size_of::<OrderedRwLock<u8, 0>>() == size_of::<parking_lot::RwLock<u8>>());

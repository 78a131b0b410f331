//! Hands out small integers, *tags*, to many threads and tasks; makes callers wait that find none;
//! wakes them in batches; and loses no waiter.
//!
//! A block device takes so many requests at a time, each under a number: its tag. A submitter gets
//! a tag first, and a completion puts it. The same is wanted wherever a fixed number of slots is
//! shared: buffers of a pool, entries of a ring, permits.
//!
//! ```
//! use undercroft_tags::TagSet;
//!
//! let set = TagSet::new(128)?;
//! std::thread::scope(|scope| {
//!     for _ in 0..4 {
//!         scope.spawn(|| {
//!             let mut caller = set.caller(); // one for each thread
//!             for _ in 0..1000 {
//!                 let tag = caller.get_blocking();
//!                 // ... use slot `tag.index()`, which is this thread's alone ...
//!                 caller.put(tag);
//!             }
//!         });
//!     }
//! });
//! assert_eq!(set.in_use(), 0);
//! # Ok::<(), undercroft_tags::ConfigError>(())
//! ```
//!
//! # Getting and waiting
//!
//! | a caller that | uses | and gets |
//! |---|---|---|
//! | does not wait | [`Caller::try_get`], [`Caller::try_get_batch`] | a tag or none |
//! | is a thread | [`Caller::get_blocking`], [`Caller::get_timeout`] | a tag, asleep until then |
//! | is a task | [`Caller::get_async`] | a future, for any executor, that may be dropped |
//! | dispatches for others | [`Caller::get_or_call`] | a tag, or a call when there may be one |
//!
//! Any thread puts ([`TagSet::put`]); a put never blocks. [`Builder`] lists what a set can have:
//! fair shares among several [users](User), the number of wait queues, the batch of wake-ups.
//!
//! ```
//! use std::pin::pin;
//! use std::task::{Context, Poll, Waker};
//! use undercroft_tags::TagSet;
//!
//! let set = TagSet::new(1)?;
//! let mut first = set.caller();
//! let tag = first.try_get().expect("nobody else takes tags");
//!
//! let mut second = set.caller();
//! let mut get = pin!(second.get_async());
//! let mut context = Context::from_waker(Waker::noop());
//! assert!(get.as_mut().poll(&mut context).is_pending());
//! first.put(tag);
//! assert_eq!(get.as_mut().poll(&mut context), Poll::Ready(tag));
//! # use std::future::Future;
//! # Ok::<(), undercroft_tags::ConfigError>(())
//! ```
//!
//! # Fairness
//!
//! A wake-up is a hint to look again, not a tag: a caller that comes at the right moment may be
//! faster than the waiter that was woken (direct hand-over would leave every tag idle until its
//! waiter has run). The waiter then goes back to its old place in its queue, so it is among the
//! first to be woken the next time. In each wait queue the order is that of arrival; with [one
//! queue](Builder::wait_queues) it is so for the whole set.
//!
//! # Why no waiter is lost
//!
//! The design is that of Linux's `sbitmap` and `blk-mq` tags, whose history is a list of lost
//! wake-ups. These invariants keep them away; each is upheld where the last column says, and the
//! models under `tests/loom` and `tests/shuttle` fail when one of them is broken on purpose.
//!
//! | | invariant | where |
//! |---|---|---|
//! | I1 | a put and a waiter never overlook each other: each writes, passes a full barrier, and looks | `sync`, `Place::publish`, `Pool::look_for_waiters`; for tags kept by callers, `tag_cache`; for threads on their way, `Place::answer` |
//! | I2 | what the last holder of a tag did is seen by the next: release in the put, acquire in the get | `Word::clear`, `Word::take`, `TagCache::take` |
//! | I3 | enough puts are still to come for every sleeper: the batch is small enough for the puts that a waiter can count on, and less than a batch is carried | `wake_batch`, `policy`; the proof is in `policy::counters` |
//! | I4 | a search fails only after it saw every tag within reach busy | `Bitmap::find`, `Pool::close_gate` |
//! | I5 | a waiter that gives up, or cannot use its wake-up, passes it on | `Place::drop`, `Place::sleep_again` |
//! | I6 | a sleeper holds no tag that only it could put | the caller's duty, see [`Caller`] |
//!
//! No timeout is part of any of this.
//!
//! # Cost
//!
//! A get and a put by the same caller while no caller waits take one locked instruction (the tag
//! comes back from the caller's own tag cache) or two (it comes from the bitmap); a put writes
//! nothing shared but that. Callers count for themselves, and [`TagSet::statistics`] adds the
//! counts up.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Rooms by floors, from the ground up: each uses only those on floors before its own.
mod demand;
mod error;
mod hold_check;
mod layout;
#[cfg(not(any(loom, shuttle)))]
mod sync;
/// What tests of the models and counts need to see.
#[cfg(any(loom, shuttle))]
#[doc(hidden)]
pub mod sync;
mod tag;
mod users;

mod batch;
mod statistics;
mod tag_cache;
mod word;

mod bitmap;
mod wait;

mod available;

mod policy;

pub mod experiments;
mod wake_batch;

mod pool;

mod place;
mod set;

mod builder;
mod membership;

mod caller;

mod user;

pub use batch::TagBatch;
pub use builder::Builder;
pub use caller::{Attempt, CallbackWait, Caller, GetAsync};
pub use error::ConfigError;
pub use set::TagSet;
pub use statistics::Statistics;
pub use tag::Tag;
pub use tag_cache::prepare_process;
pub use user::User;

//! Hands out small integers, *tags*, to many threads and tasks; those who find none wait and are
//! woken in batches, and none is lost. Interface; the bodies follow.
#![forbid(unsafe_code)]
#![allow(dead_code, clippy::unimplemented, missing_docs, reason = "the interface goes ahead of the bodies on this branch only")]

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Number of a request in flight: `0..depth` of its set, reserved ones first. A plain number that
/// may be copied; in debug builds it knows its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(u32);
impl Tag {
    pub fn number(self) -> u32 { self.0 }
    /// For indexing tables of requests.
    pub fn index(self) -> usize { self.0 as usize }
}

/// How waiters are woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum WakePolicy {
    /// Two ever-growing counters (2022).
    #[default]
    Counters,
    /// Wait queues woken in turn (2014).
    CyclicBatches,
    WakeOne,
    WakeAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError { NoTags, TooManyTags { depth: u32, most: u32 }, ShallowAboveDepth { limit: u32, depth: u32 } }

/// What a set is made of; see [`TagSet::builder`].
#[derive(Debug, Clone)]
pub struct Builder {}
impl Builder {
    pub fn policy(self, policy: WakePolicy) -> Self { unimplemented!() }
    /// 1..=8; default 8.
    pub fn wait_queues(self, queues: usize) -> Self { unimplemented!() }
    pub fn round_robin(self, on: bool) -> Self { unimplemented!() }
    /// Of the depth, this many (numbers `0..reserved`) are for reserved callers only.
    pub fn reserved(self, tags: u32) -> Self { unimplemented!() }
    pub fn fair_sharing(self, on: bool) -> Self { unimplemented!() }
    /// The lowest limit a shallow caller will have; must be declared before shallow callers exist.
    pub fn min_shallow_depth(self, depth: u32) -> Self { unimplemented!() }
    /// The depth that `resize` may go up to; default: the depth.
    pub fn max_depth(self, depth: u32) -> Self { unimplemented!() }
    /// Default: clamp(usable / 8, 1, 8).
    pub fn wake_batch(self, batch: u32) -> Self { unimplemented!() }
    pub fn build(self) -> Result<TagSet, ConfigError> { unimplemented!() }
}

/// A set of tags; clones are the same set.
#[derive(Clone)]
pub struct TagSet(Arc<()>);
impl TagSet {
    pub fn builder(depth: u32) -> Builder { unimplemented!() }
    pub fn new(depth: u32) -> Result<Self, ConfigError> { unimplemented!() }
    /// One for each thread or hardware queue that gets tags; keeps its hint and its counts.
    pub fn caller(&self) -> Caller { unimplemented!() }
    /// One for each queue that shares the set.
    pub fn user(&self) -> User { unimplemented!() }
    /// From any thread; never blocks. Use `Caller::put` where the getter puts (keeps its hint warm).
    pub fn put(&self, tag: Tag) { unimplemented!() }
    pub fn put_batch(&self, tags: TagBatch) { unimplemented!() }
    /// The tag with this number, for drivers that carry the number through hardware.
    pub fn tag(&self, number: u32) -> Option<Tag> { unimplemented!() }
    pub fn resize(&self, depth: u32) -> Result<(), ConfigError> { unimplemented!() }
    pub fn depth(&self) -> u32 { unimplemented!() }
    pub fn reserved(&self) -> u32 { unimplemented!() }
    pub fn max_depth(&self) -> u32 { unimplemented!() }
    pub fn wake_batch(&self) -> u32 { unimplemented!() }
    pub fn in_use(&self) -> u32 { unimplemented!() }
    /// Waiters now in the wait queues.
    pub fn waiting(&self) -> usize { unimplemented!() }
    pub fn iter_busy(&self) -> impl Iterator<Item = Tag> + '_ { std::iter::empty() }
    /// Wakes everybody, to look again (a queue that dies, a mapping that changes).
    pub fn wake_all(&self) { unimplemented!() }
    pub fn statistics(&self) -> Statistics { unimplemented!() }
}
impl fmt::Debug for TagSet { fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result { unimplemented!() } }

/// A queue that shares the set: with fair sharing on it may hold max(ceil(depth / active users), 4).
#[derive(Clone)]
pub struct User {}
impl User {
    pub fn caller(&self) -> Caller { unimplemented!() }
    /// No longer counts among the active users until its next get; the others' limits grow.
    pub fn idle(&self) { unimplemented!() }
    pub fn in_flight(&self) -> u32 { unimplemented!() }
}

/// Gets tags for one thread or hardware queue. `Send`, used through `&mut`.
pub struct Caller {}
impl Caller {
    /// Gets only below `limit` of the whole set (None: all). Error above the depth or below
    /// the declared `min_shallow_depth`.
    pub fn set_shallow_limit(&mut self, limit: Option<u32>) -> Result<(), ConfigError> { unimplemented!() }
    /// Makes this a caller for reserved tags. Error when the set has none.
    pub fn for_reserved(self) -> Result<Self, ConfigError> { unimplemented!() }
    pub fn try_get(&mut self) -> Option<Tag> { unimplemented!() }
    /// Up to `count` (at most 64) tags of one word; may return fewer, even none.
    pub fn try_get_batch(&mut self, count: u32) -> TagBatch { unimplemented!() }
    /// Puts and remembers the tag as hint.
    pub fn put(&mut self, tag: Tag) { unimplemented!() }
    /// Sleeps until there is a tag. Flush your plug and give back cached tags before (invariant I6).
    pub fn get_blocking(&mut self) -> Tag { unimplemented!() }
    pub fn get_timeout(&mut self, timeout: Duration) -> Option<Tag> { unimplemented!() }
    /// Cancel-safe, for any executor; `Send`.
    pub fn get_async(&mut self) -> impl Future<Output = Tag> + Send + '_ { std::future::pending() }
    /// For dispatchers: a tag at once, or a place in the queue. `callback` is called, from a put,
    /// without locks held, when a tag may be there; then `CallbackWait::retry` must follow soon,
    /// or the `CallbackWait` must be dropped.
    pub fn get_or_call(&mut self, callback: Arc<dyn Fn() + Send + Sync>) -> Attempt { unimplemented!() }
    pub fn set(&self) -> &TagSet { unimplemented!() }
}

/// Outcome of [`Caller::get_or_call`].
pub enum Attempt { Tag(Tag), Waiting(CallbackWait) }

/// A place in the wait queue. Dropping it gives it up and passes a wake-up that it already got on.
pub struct CallbackWait {}
impl CallbackWait {
    /// Tries again; on failure waits again at the same place, with the same callback.
    pub fn retry(self, caller: &mut Caller) -> Attempt { unimplemented!() }
    /// Whether the callback was (or is about to be) called since the last try.
    pub fn is_woken(&self) -> bool { unimplemented!() }
}

/// Up to 64 tags of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagBatch { base: u32, mask: u64 }
impl TagBatch {
    pub fn len(self) -> u32 { self.mask.count_ones() }
    pub fn is_empty(self) -> bool { self.mask == 0 }
    /// Takes the lowest tag out of the batch.
    pub fn pop(&mut self) -> Option<Tag> { unimplemented!() }
    pub fn iter(self) -> impl Iterator<Item = Tag> { std::iter::empty() }
}

/// Sums over all callers and wait queues since the set was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    pub gets: u64,
    pub puts: u64,
    /// Times a waiter went to sleep (or a task or callback began to wait).
    pub sleeps: u64,
    /// Wake-ups given to waiters.
    pub wakes_granted: u64,
    /// Of these, followed by a get that succeeded.
    pub wakes_used: u64,
    /// Wake-ups handed to the next by waiters who gave up.
    pub wakes_passed_on: u64,
}

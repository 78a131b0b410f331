//! Whoever gets tags.

mod blocking;
mod callback;
mod future;

pub use callback::{Attempt, CallbackWait};
pub use future::GetAsync;

use std::fmt;
use std::sync::Arc;

use crate::batch::TagBatch;
use crate::bitmap::Words;
use crate::demand::Demand;
use crate::error::ConfigError;
use crate::pool::Pool;
use crate::set::TagSet;
use crate::statistics::Counts;
use crate::tag::Tag;
use crate::user::Handle;
use crate::wait::{Place, Signal};

/// Gets tags for one thread or one hardware queue.
///
/// A caller owns what would otherwise be looked up by processor: the hint where to begin the search,
/// its counts, and whose turn it is among the wait queues. Make one per thread and keep it; it may
/// move to another thread.
///
/// # Before sleeping
/// A caller that is about to wait must not hold tags that nobody else can put (invariant I6): flush
/// your plug and give back tags kept for later, or all callers may wait for each other.
pub struct Caller {
    words: Words,
    pool: Arc<Pool>,
    counts: Counts,
    /// Bits per word, as a power of two.
    shift: u32,
    /// Where the next get looks first; a bit of the pool.
    hint: u32,
    /// Number of the tag of the pool's bit zero.
    first: u32,
    /// No limits and nobody to share with: the short way.
    plain: bool,
    round_robin: bool,
    demand: Demand,
    next_queue: usize,
    user: Option<Arc<Handle>>,
    set: TagSet,
}

impl Caller {
    pub(crate) fn new(set: &TagSet, demand: Demand, user: Option<Arc<Handle>>) -> Self {
        let (counts, before) = set.callers().enter();
        let pool = Arc::clone(set.normal());
        let mut caller = Self {
            words: Arc::clone(pool.bitmap().words()),
            counts,
            shift: pool.bitmap().layout().shift,
            hint: 0,
            first: set.reserved(),
            plain: false,
            round_robin: set.is_round_robin(),
            demand,
            next_queue: before as usize % pool.queues().len(),
            user,
            set: set.clone(),
            pool,
        };
        caller.start(before);
        caller
    }

    /// Sets the first hint. Callers begin apart from each other: multiples of the golden ratio spread
    /// evenly however many there are.
    fn start(&mut self, before: u32) {
        let spread = u64::from(before.wrapping_mul(0x9E37_79B9));
        let word = (spread * self.words.len() as u64) >> 32;
        self.hint = (word as u32) << self.shift;
        self.choose_way();
    }

    /// The short way is for ordinary tags without limits that nobody else shares.
    fn choose_way(&mut self) {
        self.plain = !self.demand.is_limited()
            && self.pool.users().is_none()
            && Arc::ptr_eq(&self.pool, self.set.normal());
    }

    /// Makes this a caller for reserved tags; limits and shares do not apply to them.
    ///
    /// # Errors
    /// The set has none.
    pub fn for_reserved(mut self) -> Result<Self, ConfigError> {
        let pool = self.set.reserved_pool().ok_or(ConfigError::NoneReserved)?;
        self.pool = Arc::clone(pool);
        self.words = Arc::clone(self.pool.bitmap().words());
        self.shift = self.pool.bitmap().layout().shift;
        self.first = 0;
        self.demand = Demand::default();
        self.start(0);
        Ok(self)
    }

    /// Limits how deep into the whole set this caller reaches: with `Some(n)` it gets a tag only while
    /// one of `n` is free, which are spread over the words. Schedulers hold back asynchronous requests
    /// this way. `None` removes the limit.
    ///
    /// # Errors
    /// A limit of zero, above the depth, below the declared
    /// [`min_shallow_depth`](crate::Builder::min_shallow_depth) or without such a declaration; any
    /// limit for a reserved caller.
    pub fn set_shallow_limit(&mut self, limit: Option<u32>) -> Result<(), ConfigError> {
        if let Some(limit) = limit {
            let depth = self.pool.bitmap().depth();
            if limit == 0 || limit > depth {
                return Err(ConfigError::ShallowOutOfRange { limit, depth });
            }
            match self.pool.rule().min_shallow {
                Some(least) if limit >= least => {}
                least => {
                    let least = least.unwrap_or(depth);
                    return Err(ConfigError::ShallowNotDeclared { limit, least });
                }
            }
        }
        self.demand.shallow = limit;
        self.choose_way();
        Ok(())
    }

    /// A tag, if there is a free one.
    #[inline]
    pub fn try_get(&mut self) -> Option<Tag> {
        if self.plain
            && let Some(word) = self.words.get((self.hint >> self.shift) as usize)
            && word.take(1 << (self.hint & ((1 << self.shift) - 1)))
        {
            let bit = self.hint;
            self.hint = bit + 1;
            self.counts.gets.add(1);
            return Some(Tag::new(self.first + bit, self.set.id()));
        }
        self.search()
    }

    /// Looks at every word, beginning with the hint's.
    #[inline(never)]
    fn search(&mut self) -> Option<Tag> {
        let bit = self.pool.find(self.demand, self.hint, self.round_robin)?;
        // The next bit is the likeliest to be free.
        self.hint = bit + 1;
        self.counts.gets.add(1);
        Some(Tag::new(self.first + bit, self.set.id()))
    }

    /// Up to `count` tags, at most 64, with one write. All of them are of one word, so there may be
    /// fewer than asked for while others are free; there are none only if no tag is free.
    ///
    /// ```
    /// # use undercroft_tags::TagSet;
    /// let set = TagSet::new(128)?;
    /// let mut caller = set.caller();
    /// let tags = caller.try_get_batch(16);
    /// assert_eq!(tags.len(), 16);
    /// set.put_batch(tags);
    /// # Ok::<(), undercroft_tags::ConfigError>(())
    /// ```
    pub fn try_get_batch(&mut self, count: u32) -> TagBatch {
        let (base, mask) = self.pool.find_run(self.demand, self.hint, count);
        if mask != 0 {
            self.hint = base + (63 - mask.leading_zeros()) + 1;
            self.counts.gets.add(u64::from(mask.count_ones()));
        }
        TagBatch::new(self.first + base, mask, self.set.id())
    }

    /// Gives a tag back and remembers it for the next get.
    ///
    /// # Wrong use
    /// As for [`TagSet::put`].
    #[inline]
    pub fn put(&mut self, tag: Tag) {
        // A tag of the other pool makes a hint that is out of range; that counts as none.
        let bit = tag.number().wrapping_sub(self.first);
        if !self.round_robin {
            self.hint = bit;
        }
        if !self.plain || tag.number() < self.first {
            return self.set.put(tag);
        }
        tag.check_set(self.set.id());
        self.pool.put((bit >> self.shift) as usize, 1 << (bit & ((1 << self.shift) - 1)));
    }

    /// The set.
    #[must_use]
    pub fn set(&self) -> &TagSet {
        &self.set
    }

    /// Stands in the next wait queue; callers go round the queues.
    fn publish(&mut self, signal: Signal) -> Place {
        let queue = self.next_queue;
        self.next_queue = (queue + 1) % self.pool.queues().len();
        Place::publish(&self.pool, queue, signal, self.demand)
    }

    /// The second look of a waiter who has been published (invariant I1): through all words.
    fn second_look(&mut self) -> Option<Tag> {
        #[cfg(loom)]
        if crate::sync::sabotage::leaves_out(crate::sync::sabotage::Part::SecondLook) {
            return None;
        }
        self.search()
    }

    /// Counts a waiter that begins to sleep.
    fn count_sleep(&self) {
        self.counts.sleeps.add(1);
    }

    /// Ends a wait by the use of its wake-up.
    fn use_wake(&self, place: Place) {
        self.counts.wakes_used.add(1);
        place.used();
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.set.callers().leave(&self.counts);
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Caller")
            .field("set", &self.set.id())
            .field("reserved", &(self.first != self.set.reserved()))
            .field("hint", &self.hint)
            .field("demand", &self.demand)
            .field("shares", &self.user.is_some())
            .finish_non_exhaustive()
    }
}

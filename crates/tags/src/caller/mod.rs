//! Callers: they get tags.

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
use crate::membership::Membership;
use crate::place::Place;
use crate::pool::Pool;
use crate::set::TagSet;
use crate::statistics::Counts;
use crate::tag::Tag;
use crate::tag_cache::{CALM, TagCache};
use crate::wait::Signal;

/// Gets tags for one thread or one hardware queue.
///
/// A caller owns what would otherwise be looked up by processor: the hint where to begin the search,
/// its counts, and whose turn it is among the wait queues. Make one per thread and keep it; it may
/// move to another thread.
///
/// # Before sleeping
/// A caller that is about to wait must not hold tags that no other thread can put (invariant I6):
/// flush your plug and give back tags kept for later, or all callers may wait for each other.
pub struct Caller {
    words: Words,
    pool: Arc<Pool>,
    counts: Counts,
    tag_cache: Arc<TagCache>,
    /// Bits per word, as a power of two, and the part of a bit's number that counts within a word.
    shift: u32,
    within: u32,
    /// Where the next get looks first; a bit of the pool.
    hint: u32,
    /// No limits and no other users: the short way.
    plain: bool,
    /// Gets from the bitmap since the last time that there was no tag.
    calm: u32,
    demand: Demand,
    next_queue: usize,
    user: Option<Arc<Membership>>,
    set: TagSet,
}

impl TagSet {
    /// A caller for one thread or hardware queue, without limits.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller::new(self, Demand::default(), None)
    }
}

impl Caller {
    pub(crate) fn new(set: &TagSet, demand: Demand, user: Option<Arc<Membership>>) -> Self {
        let (counts, before) = set.callers().enter();
        let pool = Arc::clone(set.pool());
        let words = Arc::clone(pool.bitmap().words());
        let layout = pool.bitmap().layout();
        // Callers begin apart from each other: multiples of the golden ratio spread evenly however
        // many there are.
        let spread = u64::from(before.wrapping_mul(0x9E37_79B9));
        let word = (spread * words.len() as u64) >> 32;
        Self {
            words,
            counts,
            tag_cache: pool.gate().enter(),
            shift: layout.shift,
            within: layout.bits() - 1,
            hint: (word as u32) << layout.shift,
            plain: !demand.is_limited() && pool.users().is_none(),
            calm: 0,
            demand,
            next_queue: before as usize % pool.queues().len(),
            user,
            set: set.clone(),
            pool,
        }
    }

    /// Puts the tag in the tag cache, if there is one, into the bitmap.
    fn empty_tag_cache(&self) {
        if let Some(bit) = self.tag_cache.take() {
            self.pool.put(bit, 1);
        }
    }

    /// A tag, if there is a free one.
    #[inline]
    pub fn try_get(&mut self) -> Option<Tag> {
        if let Some(bit) = self.tag_cache.take() {
            return Some(self.hand_out(bit));
        }
        self.try_get_from_bitmap()
    }

    /// A bit of the pool becomes the caller's tag.
    #[inline(always)]
    fn hand_out(&self, bit: u32) -> Tag {
        self.pool.hold_check().hand_out(bit);
        self.counts.gets.add(1);
        Tag::new(bit, self.set.id())
    }

    #[inline]
    fn try_get_from_bitmap(&mut self) -> Option<Tag> {
        if self.plain
            && let Some(word) = self.words.get((self.hint >> self.shift) as usize)
            && word.take(1 << (self.hint & self.within))
        {
            let bit = self.hint;
            self.hint = bit + 1;
            self.calm += 1;
            if self.calm >= CALM {
                self.calm = 0;
                self.pool.open_gate();
            }
            return Some(self.hand_out(bit));
        }
        self.search()
    }

    /// Looks at every word, beginning with the hint's.
    #[inline(never)]
    fn search(&mut self) -> Option<Tag> {
        let mut found = self.pool.find(self.demand, self.hint);
        if found.is_none() && self.pool.close_gate() {
            found = self.pool.find(self.demand, self.hint);
        }
        let Some(bit) = found else {
            self.calm = 0;
            return None;
        };
        // The next bit is the likeliest to be free.
        self.hint = bit + 1;
        Some(self.hand_out(bit))
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
        let (mut base, mut mask) = self.pool.find_run(self.demand, self.hint, count);
        if mask == 0 && count != 0 && self.pool.close_gate() {
            (base, mask) = self.pool.find_run(self.demand, self.hint, count);
        }
        if mask != 0 {
            for place in 0..64 {
                if cfg!(debug_assertions) && mask >> place & 1 == 1 {
                    self.pool.hold_check().hand_out(base + place);
                }
            }
            self.hint = base + (63 - mask.leading_zeros()) + 1;
            self.counts.gets.add(u64::from(mask.count_ones()));
        }
        TagBatch::new(base, mask, self.set.id())
    }

    /// Gives a tag back and remembers it for the next get.
    ///
    /// # Wrong use
    /// As for [`TagSet::put`].
    #[inline]
    pub fn put(&mut self, tag: Tag) {
        let bit = tag.number();
        // A tag that the set does not have makes a hint that counts as none.
        self.hint = bit;
        match self.words.get((bit >> self.shift) as usize) {
            Some(word) if self.plain => {
                tag.check_set(self.set.id());
                self.pool.hold_check().take_back(bit);
                if self.tag_cache.keep(bit, self.pool.gate()).is_err() {
                    word.clear(1 << (bit & self.within));
                    self.pool.look_for_waiters(1);
                }
            }
            _ => self.set.put(tag),
        }
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

    /// The second look of a waiter that has been published (invariant I1): through all words.
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

    /// The look of a waiter that was woken.
    fn answer(&mut self, place: &mut Place) -> Option<Tag> {
        place.answer();
        let tag = self.search()?;
        self.counts.wakes_used.add(1);
        Some(tag)
    }

    /// Ends a wait with a tag. While the waiter was on its way, others may have been spared theirs.
    fn end_wait(&self, place: Place, tag: Tag) -> Tag {
        drop(place);
        self.pool.look_again();
        tag
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.pool.gate().leave(&self.tag_cache);
        self.empty_tag_cache();
        self.set.callers().leave(&self.counts);
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Caller")
            .field("set", &self.set.id())
            .field("hint", &self.hint)
            .field("demand", &self.demand)
            .field("shares", &self.user.is_some())
            .finish_non_exhaustive()
    }
}

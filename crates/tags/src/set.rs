//! The set of tags that callers share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::batch::TagBatch;
use crate::error::ConfigError;
use crate::pool::Pool;
use crate::statistics::{Register, Statistics};
use crate::tag::Tag;
use crate::users::Users;

/// Identities of sets, for the checks of debug builds.
static SETS: AtomicU32 = AtomicU32::new(0);

/// A set of tags; clones are the same set.
///
/// Tags are got through a [`Caller`](crate::Caller) and put by any thread.
#[derive(Clone)]
pub struct TagSet(Arc<Inner>);

struct Inner {
    id: u32,
    /// Tags `0..reserved` are in the reserved pool, the others, counted from zero, in the normal one.
    reserved: u32,
    normal: Arc<Pool>,
    reserved_pool: Option<Arc<Pool>>,
    max_depth: u32,
    callers: Register,
}

impl TagSet {
    /// A set of `depth` tags with the defaults of [`Builder`](crate::Builder).
    ///
    /// # Errors
    /// A depth of zero or above [`Builder::MOST_TAGS`](crate::Builder::MOST_TAGS).
    pub fn new(depth: u32) -> Result<Self, ConfigError> {
        Self::builder(depth).build()
    }

    pub(crate) fn from_parts(
        normal: Pool,
        reserved_pool: Option<(u32, Pool)>,
        max_depth: u32,
    ) -> Self {
        let (reserved, reserved_pool) = match reserved_pool {
            Some((reserved, pool)) => (reserved, Some(Arc::new(pool))),
            None => (0, None),
        };
        Self(Arc::new(Inner {
            id: SETS.fetch_add(1, Ordering::Relaxed),
            reserved,
            normal: Arc::new(normal),
            reserved_pool,
            max_depth,
            callers: Register::default(),
        }))
    }

    /// Gives a tag back, from any thread; never blocks. [`Caller::put`](crate::Caller::put) does the same and remembers
    /// the tag for the next get: use it where the thread that got the tag puts it.
    ///
    /// # Wrong use
    /// A tag that is not held (put twice, for instance), that is out of range, or that belongs to
    /// another set, panics in debug builds. In release builds:
    ///
    /// - a tag put twice is free, and may be handed out to two callers. Waiters may be woken for
    ///   nothing.
    /// - a tag that the set does not have is ignored.
    /// - a tag of another set counts as the tag of this set with the same number.
    #[inline]
    pub fn put(&self, tag: Tag) {
        tag.check_set(self.0.id);
        self.put_mask(tag.number(), 1);
    }

    /// Gives tags back, with one write and one look for waiters.
    ///
    /// # Wrong use
    /// As for [`TagSet::put`].
    pub fn put_batch(&self, tags: TagBatch) {
        if tags.is_empty() {
            return;
        }
        tags.check_set(self.0.id);
        let (base, mask) = tags.parts();
        self.put_mask(base, mask);
    }

    /// Gives tags back, with one write and one look for waiters for each run of them that lies in
    /// one word.
    ///
    /// # Wrong use
    /// As for [`TagSet::put`].
    pub fn put_all(&self, tags: impl IntoIterator<Item = Tag>) {
        let bits = self.0.normal.bitmap().layout().bits();
        let (mut base, mut mask) = (0, 0);
        for tag in tags {
            tag.check_set(self.0.id);
            let Some(bit) = tag.number().checked_sub(self.0.reserved) else {
                self.put_mask(tag.number(), 1);
                continue;
            };
            // Words have a power of two bits.
            let (word, inside) = (bit & !(bits - 1), 1 << (bit & (bits - 1)));
            if word != base && mask != 0 {
                self.put_mask(self.0.reserved + base, mask);
                mask = 0;
            }
            base = word;
            mask |= inside;
        }
        if mask != 0 {
            self.put_mask(self.0.reserved + base, mask);
        }
    }

    /// Puts tags of one word: `first` is the number of the tag of bit zero.
    #[inline]
    fn put_mask(&self, first: u32, mask: u64) {
        let (pool, bit) = match first.checked_sub(self.0.reserved) {
            Some(bit) => (&self.0.normal, bit),
            None => match &self.0.reserved_pool {
                Some(pool) => (pool, first),
                None => return,
            },
        };
        for place in 0..64 {
            if cfg!(debug_assertions) && mask >> place & 1 == 1 {
                pool.hold_check().take_back(bit + place, first + place);
            }
        }
        pool.put(bit, mask);
    }

    /// The tag with this number, for drivers that carry only the number through their hardware.
    /// `None` when the set can have no such tag, even after a resize.
    #[must_use]
    pub fn tag(&self, number: u32) -> Option<Tag> {
        (number < self.0.max_depth).then(|| Tag::new(number, self.0.id))
    }

    /// Changes the depth, reserved tags included, while the set is in use. Tags beyond the new depth
    /// are no longer given out and stay valid until they are put; a get that runs at the same moment
    /// may still return one.
    ///
    /// # Errors
    /// A depth above [`TagSet::max_depth`], or one that leaves no tag that is not reserved.
    pub fn resize(&self, depth: u32) -> Result<(), ConfigError> {
        if depth == 0 {
            return Err(ConfigError::NoTags);
        }
        if depth > self.0.max_depth {
            return Err(ConfigError::TooManyTags { depth, most: self.0.max_depth });
        }
        if depth <= self.0.reserved {
            return Err(ConfigError::AllReserved { reserved: self.0.reserved, depth });
        }
        self.0.normal.resize(depth - self.0.reserved);
        Ok(())
    }

    /// Number of tags, reserved ones included.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.0.reserved + self.0.normal.bitmap().depth()
    }

    /// The most that the set can be resized to.
    #[must_use]
    pub fn max_depth(&self) -> u32 {
        self.0.max_depth
    }

    /// Number of reserved tags: `0..reserved`.
    #[must_use]
    pub fn reserved(&self) -> u32 {
        self.0.reserved
    }

    /// How many waiters are woken together, at the present depth and number of users.
    #[must_use]
    pub fn wake_batch(&self) -> u32 {
        self.0.normal.batch()
    }

    /// Number of users that share the set now; zero without fair sharing.
    #[must_use]
    pub fn active_users(&self) -> u32 {
        self.0.normal.users().map_or(0, Users::active)
    }

    /// Number of tags that are held.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        self.pools()
            .map(|(_, pool)| {
                let kept = pool.gate().kept().len() as u32;
                pool.bitmap().weight().saturating_sub(kept)
            })
            .sum()
    }

    /// The tags that are held, in rising order; each word as it was at one moment, the whole as it
    /// was at none.
    pub fn iter_busy(&self) -> impl Iterator<Item = Tag> + '_ {
        self.pools()
            .flat_map(|(first, pool)| {
                let kept = pool.gate().kept();
                let busy = pool.bitmap().busy().filter(move |bit| !kept.contains(bit));
                busy.map(move |bit| first + bit)
            })
            .map(|number| Tag::new(number, self.0.id))
    }

    /// Number of waiters in the wait queues. Woken ones that have not run yet are not among them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pools().map(|(_, pool)| pool.queues().waiting()).sum()
    }

    /// Wakes every waiter to look again, such as when a queue dies or its callers must go elsewhere.
    pub fn wake_all(&self) {
        for (_, pool) in self.pools() {
            pool.wake_everybody();
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let waits = self.pools().map(|(_, pool)| pool.queues().counts()).sum();
        Statistics::new(self.0.callers.sums(), self.in_use(), waits)
    }

    /// The pools, each with the number of its first tag, in rising order.
    fn pools(&self) -> impl Iterator<Item = (u32, &Arc<Pool>)> {
        let reserved = self.0.reserved_pool.iter().map(|pool| (0, pool));
        reserved.chain(std::iter::once((self.0.reserved, &self.0.normal)))
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        self.0.id
    }

    pub(crate) fn normal(&self) -> &Arc<Pool> {
        &self.0.normal
    }

    pub(crate) fn reserved_pool(&self) -> Option<&Arc<Pool>> {
        self.0.reserved_pool.as_ref()
    }

    pub(crate) fn callers(&self) -> &Register {
        &self.0.callers
    }
}

impl fmt::Debug for TagSet {
    /// For people: depth, policy, busy tags as ranges, and the waiters of each queue.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TagSet")
            .field("id", &self.0.id)
            .field("depth", &self.depth())
            .field("max_depth", &self.0.max_depth)
            .field("reserved", &self.0.reserved)
            .field("bits_per_word", &self.0.normal.bitmap().layout().bits())
            .field("policy", &self.0.normal.policy())
            .field("wake_batch", &self.wake_batch())
            .field("active_users", &self.active_users())
            .field("busy", &Ranges(self))
            .field("waiters_per_queue", &self.0.normal.queues().lengths())
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}

/// Busy tags, neighbours joined.
struct Ranges<'a>(&'a TagSet);

impl fmt::Debug for Ranges<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = formatter.debug_list();
        let mut range: Option<std::ops::RangeInclusive<u32>> = None;
        for number in self.0.iter_busy().map(Tag::number) {
            range = match range {
                Some(open) if open.end() + 1 == number => Some(*open.start()..=number),
                Some(done) => {
                    list.entry(&done);
                    Some(number..=number)
                }
                None => Some(number..=number),
            };
        }
        list.entries(range).finish()
    }
}

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
    pool: Arc<Pool>,
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

    pub(crate) fn of(pool: Pool) -> Self {
        Self(Arc::new(Inner {
            id: SETS.fetch_add(1, Ordering::Relaxed),
            pool: Arc::new(pool),
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
        let bits = self.0.pool.bitmap().layout().bits();
        let (mut base, mut mask) = (0, 0);
        for tag in tags {
            tag.check_set(self.0.id);
            // Words have a power of two bits.
            let (word, inside) = (tag.number() & !(bits - 1), 1 << (tag.number() & (bits - 1)));
            if word != base && mask != 0 {
                self.put_mask(base, mask);
                mask = 0;
            }
            base = word;
            mask |= inside;
        }
        if mask != 0 {
            self.put_mask(base, mask);
        }
    }

    /// Puts tags of one word: `first` is the number of the tag of bit zero.
    #[inline]
    fn put_mask(&self, first: u32, mask: u64) {
        let pool = &self.0.pool;
        for place in 0..64 {
            if cfg!(debug_assertions) && mask >> place & 1 == 1 {
                pool.hold_check().take_back(first + place);
            }
        }
        pool.put(first, mask);
    }

    /// The tag with this number, for drivers that carry only the number through their hardware.
    /// `None` when the set has no such tag.
    #[must_use]
    pub fn tag(&self, number: u32) -> Option<Tag> {
        (number < self.depth()).then(|| Tag::new(number, self.0.id))
    }

    /// Number of tags.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.0.pool.bitmap().depth()
    }

    /// How many waiters are woken together, at the present number of users.
    #[must_use]
    pub fn wake_batch(&self) -> u32 {
        self.0.pool.batch()
    }

    /// Number of users that share the set now; zero without fair sharing.
    #[must_use]
    pub fn active_users(&self) -> u32 {
        self.0.pool.users().map_or(0, Users::active)
    }

    /// Number of tags that are held.
    #[must_use]
    pub fn in_use(&self) -> u32 {
        let kept = self.0.pool.gate().kept().len() as u32;
        self.0.pool.bitmap().weight().saturating_sub(kept)
    }

    /// The tags that are held, in rising order; each word as it was at one moment, the whole as it
    /// was at none.
    pub fn iter_busy(&self) -> impl Iterator<Item = Tag> + '_ {
        let kept = self.0.pool.gate().kept();
        let busy = self.0.pool.bitmap().busy().filter(move |bit| !kept.contains(bit));
        busy.map(|number| Tag::new(number, self.0.id))
    }

    /// Number of waiters in the wait queues. Woken ones that have not run yet are not among them.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.pool.queues().waiting()
    }

    /// Wakes every waiter to look again, such as when a queue dies or its callers must go elsewhere.
    pub fn wake_all(&self) {
        self.0.pool.wake_everybody();
    }

    /// What happened so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let waits = self.0.pool.queues().counts();
        Statistics::new(self.0.callers.sums(), self.in_use(), waits)
    }

    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        self.0.id
    }

    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.0.pool
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
            .field("bits_per_word", &self.0.pool.bitmap().layout().bits())
            .field("policy", &self.0.pool.policy())
            .field("wake_batch", &self.wake_batch())
            .field("active_users", &self.active_users())
            .field("busy", &Ranges(self))
            .field("waiters_per_queue", &self.0.pool.queues().lengths())
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

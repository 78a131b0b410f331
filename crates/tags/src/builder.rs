//! The options of a set.

use crate::error::ConfigError;
use crate::experiments::WakePolicy;
use crate::pool::{Pool, PoolShape};
use crate::set::TagSet;
use crate::wake_batch::BatchRule;

/// Makes a [`TagSet`]; see [`TagSet::builder`].
///
/// ```
/// use undercroft_tags::TagSet;
///
/// let set = TagSet::builder(256).reserved(2).max_depth(1024).build()?;
/// assert_eq!((set.depth(), set.reserved(), set.wake_batch()), (256, 2, 8));
/// # Ok::<(), undercroft_tags::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    depth: u32,
    max_depth: Option<u32>,
    reserved: u32,
    /// Another one only in experiments.
    pub(crate) policy: WakePolicy,
    wait_queues: usize,
    wake_batch: Option<u32>,
    fair_sharing: bool,
    tag_caches: bool,
    threads_at_once: Option<u32>,
}

impl TagSet {
    /// Begins a set of `depth` tags, reserved ones among them.
    #[must_use]
    pub fn builder(depth: u32) -> Builder {
        Builder::new(depth)
    }
}

impl Builder {
    /// The most tags of a set.
    pub const MOST_TAGS: u32 = 1 << 30;
    /// The most wait queues, and the default.
    pub const MOST_WAIT_QUEUES: usize = 8;

    pub(crate) fn new(depth: u32) -> Self {
        Self {
            depth,
            max_depth: None,
            reserved: 0,
            policy: WakePolicy::default(),
            wait_queues: Self::MOST_WAIT_QUEUES,
            wake_batch: None,
            fair_sharing: false,
            tag_caches: true,
            threads_at_once: None,
        }
    }

    /// Number of wait queues, 1 to 8; 8 by default. Order of arrival is kept in each: with one queue
    /// it is kept overall, with more of them there is less contention for their locks.
    #[must_use]
    pub fn wait_queues(mut self, queues: usize) -> Self {
        self.wait_queues = queues;
        self
    }

    /// How many waiters are woken together. By default an eighth of the tags that the waiter with the
    /// smallest share can count on, 1 to 8. A set that shrinks, or is shared, lowers it where needed.
    #[must_use]
    pub fn wake_batch(mut self, batch: u32) -> Self {
        self.wake_batch = Some(batch);
        self
    }

    /// Keeps the tags `0..tags` for [reserved callers](crate::Caller::for_reserved), which keep a
    /// set alive that is otherwise full (error handling, for instance).
    #[must_use]
    pub fn reserved(mut self, tags: u32) -> Self {
        self.reserved = tags;
        self
    }

    /// Whether each [user](crate::User) has a limit, its fair share of the set.
    #[must_use]
    pub fn fair_sharing(mut self, on: bool) -> Self {
        self.fair_sharing = on;
        self
    }

    /// Whether a caller keeps the tag it [put](crate::Caller::put) last for its next get, while no
    /// caller waits; it does by default. That nearly halves the time of a get and a put. Tag caches
    /// are not used with fair sharing, nor where the system has no `membarrier` (other than Linux, some
    /// sandboxes).
    #[must_use]
    pub fn tag_caches(mut self, on: bool) -> Self {
        self.tag_caches = on;
        self
    }

    /// How many threads are on their way at once, from their wake-up to their look for a tag; at least
    /// one. By default as many as there are processors for this process: to
    /// wake more would only make them wait for one of those.
    #[must_use]
    pub fn threads_at_once(mut self, threads: u32) -> Self {
        self.threads_at_once = Some(threads);
        self
    }

    /// The most that the set can be [resized](TagSet::resize) to; by default the depth.
    #[must_use]
    pub fn max_depth(mut self, depth: u32) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// Makes the set.
    ///
    /// # Errors
    /// A depth of zero or above [`Builder::MOST_TAGS`] or above the maximum; no tag besides the
    /// reserved ones; a number of wait queues or a wake batch out of range.
    pub fn build(self) -> Result<TagSet, ConfigError> {
        let max_depth = self.max_depth.unwrap_or(self.depth);
        self.check(max_depth)?;
        let depth = self.depth - self.reserved;
        let queues = self.wait_queues;
        let rule = BatchRule { explicit: self.wake_batch };
        let threads_at_once = self.threads_at_once.unwrap_or_else(processors).max(1);
        let policy = || self.policy.make(queues, threads_at_once);
        if let Some(batch) = self.wake_batch {
            let policy = policy();
            if rule.batch(&*policy, depth, 1) != batch {
                let most = policy.most_batch(BatchRule::usable(depth, 1));
                return Err(ConfigError::WakeBatch { batch, most });
            }
        }
        let shape = PoolShape {
            capacity: max_depth - self.reserved,
            depth,
            queues,
            shared: self.fair_sharing,
            tag_caches: self.tag_caches && !self.fair_sharing,
        };
        let normal = Pool::new(&shape, rule, policy());
        let reserved = (self.reserved > 0).then(|| {
            // Shares are matters of ordinary tags.
            let (capacity, depth) = (self.reserved, self.reserved);
            let shape = PoolShape { capacity, depth, queues, shared: false, tag_caches: false };
            (self.reserved, Pool::new(&shape, rule, policy()))
        });
        Ok(TagSet::from_parts(normal, reserved, max_depth))
    }

    fn check(&self, max_depth: u32) -> Result<(), ConfigError> {
        if self.depth == 0 {
            return Err(ConfigError::NoTags);
        }
        if max_depth > Self::MOST_TAGS {
            return Err(ConfigError::TooManyTags { depth: max_depth, most: Self::MOST_TAGS });
        }
        if self.depth > max_depth {
            return Err(ConfigError::TooManyTags { depth: self.depth, most: max_depth });
        }
        if self.reserved >= self.depth {
            let (reserved, depth) = (self.reserved, self.depth);
            return Err(ConfigError::AllReserved { reserved, depth });
        }
        if !(1..=Self::MOST_WAIT_QUEUES).contains(&self.wait_queues) {
            let (queues, most) = (self.wait_queues, Self::MOST_WAIT_QUEUES);
            return Err(ConfigError::WaitQueues { queues, most });
        }
        Ok(())
    }
}

/// Processors that this process may use; one if that is unknown.
fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
}

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
/// let set = TagSet::builder(256).wait_queues(4).build()?;
/// assert_eq!((set.depth(), set.wake_batch()), (256, 8));
/// # Ok::<(), undercroft_tags::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    depth: u32,
    /// Another one only in experiments.
    pub(crate) policy: WakePolicy,
    wait_queues: usize,
    wake_batch: Option<u32>,
    fair_sharing: bool,
    tag_caches: bool,
    threads_at_once: Option<u32>,
}

impl TagSet {
    /// Begins a set of `depth` tags.
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
    /// smallest share can count on, 1 to 8. A set that is shared lowers it where needed.
    #[must_use]
    pub fn wake_batch(mut self, batch: u32) -> Self {
        self.wake_batch = Some(batch);
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

    /// How waiters are woken; [`WakePolicy::Counters`] by default.
    #[must_use]
    pub fn policy(mut self, policy: WakePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Makes the set.
    ///
    /// # Errors
    /// A depth of zero or above [`Builder::MOST_TAGS`]; a number of wait queues or a wake batch out of
    /// range.
    pub fn build(self) -> Result<TagSet, ConfigError> {
        self.check()?;
        let Self { depth, wait_queues: queues, fair_sharing: shared, .. } = self;
        let threads_at_once = self.threads_at_once.unwrap_or_else(processors).max(1);
        let policy = self.policy.make(queues, threads_at_once);
        let rule = BatchRule { explicit: self.wake_batch };
        if let Some(batch) = self.wake_batch
            && rule.batch(&*policy, depth, 1) != batch
        {
            let most = policy.most_batch(BatchRule::usable(depth, 1));
            return Err(ConfigError::WakeBatch { batch, most });
        }
        let shape = PoolShape { depth, queues, shared, tag_caches: self.tag_caches && !shared };
        Ok(TagSet::of(Pool::new(&shape, rule, policy)))
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.depth == 0 {
            return Err(ConfigError::NoTags);
        }
        if self.depth > Self::MOST_TAGS {
            return Err(ConfigError::TooManyTags { depth: self.depth, most: Self::MOST_TAGS });
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

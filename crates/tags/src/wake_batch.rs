//! How many waiters are woken together.

use crate::policy::WakePolicy;

/// Most waiters that are woken together, unless the builder says otherwise.
const MOST: u32 = 8;
/// A waiter can count on this many batches.
const BATCHES: u32 = 8;

/// The inputs of the wake batch, apart from depth and users.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRule {
    /// The builder's own batch.
    pub(crate) explicit: Option<u32>,
    /// The least shallow limit that a caller may have.
    pub(crate) min_shallow: Option<u32>,
    pub(crate) policy: WakePolicy,
    pub(crate) queues: usize,
    /// Threads that can be on their way from a wake-up to their look at the same time.
    pub(crate) threads_at_once: u32,
}

impl BatchRule {
    /// Tags whose puts the waiter with the least reach can count on: the depth, less with shallow
    /// limits and among several users. There is no lower bound to a user's share here: one of four
    /// would make the batch too large for shares below it, and hung Linux until 2023.
    pub(crate) fn usable(&self, depth: u32, users: u32) -> u32 {
        depth.div_ceil(users.max(1)).min(self.min_shallow.unwrap_or(depth)).max(1)
    }

    /// The wake batch.
    pub(crate) fn batch(&self, depth: u32, users: u32) -> u32 {
        let usable = self.usable(depth, users);
        match self.explicit {
            None => (usable / BATCHES).clamp(1, MOST),
            Some(batch) => batch.clamp(1, self.policy.most_batch(usable, self.queues)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_is_an_eighth_and_at_most_eight() {
        let rule = BatchRule {
            explicit: None,
            min_shallow: None,
            policy: WakePolicy::Counters,
            queues: 8,
            threads_at_once: 1,
        };
        for (depth, users, batch) in
            [(1, 1, 1), (8, 1, 1), (15, 1, 1), (16, 1, 2), (64, 1, 8), (10_000, 1, 8), (64, 2, 4)]
        {
            assert_eq!(rule.batch(depth, users), batch, "depth {depth}, {users} users");
        }
        let shallow = BatchRule { min_shallow: Some(17), ..rule };
        assert_eq!(shallow.batch(64, 1), 2);
        assert_eq!(shallow.batch(64, 16), 1);
    }

    #[test]
    fn an_explicit_batch_ends_where_a_waiter_could_be_left_asleep() {
        let rule = BatchRule {
            explicit: Some(6),
            min_shallow: None,
            policy: WakePolicy::CyclicBatches,
            queues: 4,
            threads_at_once: 1,
        };
        assert_eq!(rule.batch(64, 1), 6);
        assert_eq!(rule.batch(16, 1), 4);
        assert_eq!(BatchRule { policy: WakePolicy::Counters, ..rule }.batch(16, 4), 4);
    }
}

//! How many waiters are woken together.

use crate::policy::Policy;

/// Most waiters that are woken together, unless the builder says otherwise.
const MOST: u32 = 8;
/// A waiter can count on this many batches.
const BATCHES: u32 = 8;

/// The inputs of the wake batch, apart from depth and users.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchRule {
    /// The builder's own batch.
    pub(crate) explicit: Option<u32>,
}

impl BatchRule {
    /// Tags whose puts the waiter with the smallest share can count on: the depth, less among several
    /// users. There is no lower bound to a user's share here: one of four would make the batch too
    /// large for shares below it, and hung Linux until 2023.
    pub(crate) fn usable(depth: u32, users: u32) -> u32 {
        depth.div_ceil(users.max(1)).max(1)
    }

    /// The wake batch.
    pub(crate) fn batch(self, policy: &dyn Policy, depth: u32, users: u32) -> u32 {
        let usable = Self::usable(depth, users);
        match self.explicit {
            None => (usable / BATCHES).clamp(1, MOST),
            Some(batch) => batch.clamp(1, policy.most_batch(usable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::WakePolicy;

    #[test]
    fn batch_is_an_eighth_and_at_most_eight() {
        let (rule, policy) = (BatchRule::default(), WakePolicy::Counters.make(8, 1));
        for (depth, users, batch) in
            [(1, 1, 1), (8, 1, 1), (15, 1, 1), (16, 1, 2), (64, 1, 8), (10_000, 1, 8), (64, 2, 4)]
        {
            assert_eq!(rule.batch(&*policy, depth, users), batch, "depth {depth}, {users} users");
        }
    }

    #[test]
    fn an_explicit_batch_ends_where_a_waiter_could_be_left_asleep() {
        let rule = BatchRule { explicit: Some(6) };
        let cyclic = WakePolicy::CyclicBatches.make(4, 1);
        assert_eq!(rule.batch(&*cyclic, 64, 1), 6);
        assert_eq!(rule.batch(&*cyclic, 16, 1), 4);
        assert_eq!(rule.batch(&*WakePolicy::Counters.make(4, 1), 16, 4), 4);
    }
}

//! A user of a shared set.

use std::sync::Arc;

use crate::caller::Caller;
use crate::demand::Demand;
use crate::membership::Membership;
use crate::set::TagSet;

/// One of the users that share a set, such as one of several queues over one device; clones are the
/// same user.
///
/// With [fair sharing](crate::Builder::fair_sharing), an active user may hold at most
/// max(⌈depth / active users⌉, 4) tags (Linux, `hctx_may_queue`). A user is active from its first get
/// until [`User::idle`], or until it and all its callers are dropped. Callers that get at the same
/// moment may exceed the share by one tag each. A set of one tag is not
/// shared out. Without fair sharing a user has no limit.
#[derive(Debug, Clone)]
pub struct User(Arc<Membership>);

impl TagSet {
    /// A new user of the set, with a share of its own.
    #[must_use]
    pub fn user(&self) -> User {
        User::new(self)
    }
}

impl User {
    pub(crate) fn new(set: &TagSet) -> Self {
        Self(Arc::new(Membership::enter(set)))
    }

    /// A caller whose tags count towards this user's share.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let demand = Demand { user: self.0.number() };
        Caller::new(self.0.set(), demand, Some(Arc::clone(&self.0)))
    }

    /// Ends the user's share until its next get; the others' shares grow. Tags that it holds stay
    /// valid. Call it when the user has had nothing to do for a while (Linux: 5 seconds).
    pub fn idle(&self) {
        self.0.idle();
    }

    /// Tags that this user holds; zero without fair sharing.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        match (self.0.set().pool().users(), self.0.number()) {
            (Some(users), Some(number)) => users.in_flight(number),
            _ => 0,
        }
    }
}

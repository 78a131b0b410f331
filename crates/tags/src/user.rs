//! A user of a shared set.

use std::sync::Arc;

use crate::caller::Caller;
use crate::demand::Demand;
use crate::set::TagSet;
use crate::users::Users;

/// One of those who share a set, such as one of several queues over one device; clones are the same
/// user.
///
/// With [fair sharing](crate::Builder::fair_sharing), an active user may hold at most
/// max(⌈depth / active users⌉, 4) tags (Linux, `hctx_may_queue`). A user is active from its first get
/// until [`User::idle`], or until it and all its callers are dropped. Callers that get at the same
/// moment may exceed the share by one tag each. Reserved tags are not shared out, nor is a set of one
/// tag. Without fair sharing a user has no limit.
#[derive(Debug, Clone)]
pub struct User(Arc<Handle>);

/// Leaves when the last clone and the last caller are gone.
#[derive(Debug)]
pub(crate) struct Handle {
    set: TagSet,
    /// Absent without fair sharing.
    number: Option<u32>,
}

impl User {
    pub(crate) fn new(set: &TagSet) -> Self {
        let number = set.normal().users().map(Users::enter);
        Self(Arc::new(Handle { set: set.clone(), number }))
    }

    /// A caller whose tags count towards this user's share.
    #[must_use]
    pub fn caller(&self) -> Caller {
        let demand = Demand { shallow: None, user: self.0.number };
        Caller::new(&self.0.set, demand, Some(Arc::clone(&self.0)))
    }

    /// Ends the user's share until its next get; the others' shares grow. Tags that it holds stay
    /// valid. Call it when the user has had nothing to do for a while (Linux: 5 seconds).
    pub fn idle(&self) {
        self.0.idle();
    }

    /// Tags that this user holds; zero without fair sharing.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        match (self.0.set.normal().users(), self.0.number) {
            (Some(users), Some(number)) => users.in_flight(number),
            _ => 0,
        }
    }
}

impl Handle {
    fn idle(&self) {
        if let Some(number) = self.number {
            self.set.normal().set_active(number, false);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.idle();
        if let (Some(users), Some(number)) = (self.set.normal().users(), self.number) {
            users.leave(number);
        }
    }
}

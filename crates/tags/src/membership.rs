//! A user's membership in the users that share a set.

use crate::set::TagSet;
use crate::users::Users;

/// Leaves when the last clone and the last caller are gone.
#[derive(Debug)]
pub(crate) struct Membership {
    set: TagSet,
    /// Absent without fair sharing.
    number: Option<u32>,
}

impl Membership {
    /// Joins the users that share the set.
    pub(crate) fn enter(set: &TagSet) -> Self {
        let number = set.pool().users().map(Users::enter);
        Self { set: set.clone(), number }
    }

    /// The set.
    pub(crate) fn set(&self) -> &TagSet {
        &self.set
    }

    /// The number of the user; `None` without fair sharing.
    pub(crate) fn number(&self) -> Option<u32> {
        self.number
    }

    /// Ends the share until the next get.
    pub(crate) fn idle(&self) {
        if let Some(number) = self.number {
            self.set.pool().set_active(number, false);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.idle();
        if let (Some(users), Some(number)) = (self.set.pool().users(), self.number) {
            users.leave(number);
        }
    }
}

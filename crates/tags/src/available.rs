//! What there is to be had now, for a demand.

use crate::bitmap::Bitmap;
use crate::demand::Demand;
use crate::users::Users;

/// The tags of a pool, and the shares of its users.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Available<'a> {
    pub(crate) bitmap: &'a Bitmap,
    /// Present with fair sharing.
    pub(crate) users: Option<&'a Users>,
}

impl Available<'_> {
    /// Whether a waiter with this demand would find a tag now.
    pub(crate) fn would_find(self, demand: Demand) -> bool {
        self.could_use(demand) && self.bitmap.has_free()
    }

    /// Whether a waiter with this demand could use a wake-up that is given for a tag just put: its
    /// share has room.
    pub(crate) fn could_use(self, demand: Demand) -> bool {
        match (self.users, demand.user) {
            (Some(users), Some(user)) => users.left(user, self.bitmap.depth()) > 0,
            _ => true,
        }
    }
}

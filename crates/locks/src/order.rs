//! Whether a thread may wait for a lock while it holds others.

use std::panic::Location;

use crate::CHECKED;
use crate::held::{Held, Mode, find, next_key};
use crate::violation::{Rule, refuse};

/// Takes a lock for which the thread may have to wait: `acquire`, if the order allows it.
#[inline]
#[track_caller]
pub(crate) fn block(address: usize, rank: u8, mode: Mode, acquire: impl FnOnce()) {
    if CHECKED {
        let key = next_key();
        let wanted = Held { address, rank, mode, key, place: Location::caller() };
        wanted.check_against(|_| true);
        acquire();
        wanted.push();
    } else {
        acquire();
    }
}

/// The thread is about to set down a lock, sleep, and take it again. That blocks, so the order must
/// allow it, which is checked while the lock is still held. Returns the key to take it again with.
#[inline]
#[track_caller]
pub(crate) fn will_take_again(address: usize) -> Option<u64> {
    if !CHECKED {
        return None;
    }
    let lock = find(|lock| (lock.address == address).then_some(*lock))?;
    let again = Held { place: Location::caller(), ..lock };
    again.check_against(|other| other.address != address);
    lock.key
}

impl Held {
    /// Panics if the thread must not wait for this lock while it holds others that count.
    #[track_caller]
    fn check_against(self, counts: impl Fn(&Self) -> bool) {
        let broken = |other: &Self| {
            let rule = self.breaks(other).filter(|_| counts(other))?;
            Some((rule, *other))
        };
        if let Some(last) = find(broken) {
            // The same lock tells more than what else is wrong.
            let same = find(|other| broken(other).filter(|(rule, _)| *rule == Rule::Twice));
            let (rule, other) = same.unwrap_or(last);
            refuse(rule, &self, &other);
        }
    }

    /// The rule against waiting for this lock while the other is held.
    fn breaks(&self, other: &Self) -> Option<Rule> {
        let ascending = self.key.zip(other.key).is_some_and(|(mine, its)| mine > its);
        if other.address == self.address {
            Some(Rule::Twice)
        } else if other.rank > self.rank {
            Some(Rule::Rank)
        } else if other.rank == self.rank && !ascending {
            Some(Rule::Key)
        } else {
            None
        }
    }
}

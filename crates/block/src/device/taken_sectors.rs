//! The sectors of a leaf that are taken.

use std::ops::Range;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::units::Sector;

/// The sectors of a leaf that have a holder.
#[derive(Debug, Default)]
pub struct Reservations {
    taken: Mutex<Vec<Range<Sector>>>,
    freed: Condvar,
}

impl Reservations {
    /// Takes `sectors`, if they are free before `until`.
    pub(super) fn take(&self, sectors: Range<Sector>, until: Instant) -> bool {
        let mut taken = self.taken.lock();
        while taken.iter().any(|other| overlap(other, &sectors)) {
            if self.freed.wait_until(&mut taken, until).timed_out() {
                return false;
            }
        }
        taken.push(sectors);
        true
    }

    pub(super) fn give_back(&self, sectors: &Range<Sector>) {
        let mut taken = self.taken.lock();
        // They do not overlap, so this is the one.
        if let Some(index) = taken.iter().position(|other| other == sectors) {
            taken.swap_remove(index);
        }
        self.freed.notify_all();
    }
}

pub(super) fn overlap(one: &Range<Sector>, other: &Range<Sector>) -> bool {
    one.start < other.end && other.start < one.end
}

//! How many bytes of files may be dirty.

use parking_lot::{Condvar, Mutex};

/// A budget of bytes. Permits are counts: whoever gives some back says how many.
#[derive(Debug)]
pub(super) struct Budget {
    bytes: u64,
    taken: Mutex<u64>,
    given_back: Condvar,
}

impl Budget {
    pub(super) fn new(bytes: u64) -> Self {
        Self { bytes, taken: Mutex::new(0), given_back: Condvar::new() }
    }

    /// Takes a permit for `bytes` bytes, if there is one. One that is larger than the budget is
    /// had when nobody else has any.
    pub(super) fn try_take(&self, bytes: u64) -> bool {
        let mut taken = self.taken.lock();
        let fits = *taken == 0 || *taken + bytes <= self.bytes;
        if fits {
            *taken += bytes;
        }
        fits
    }

    /// Sleeps until somebody gives a part back, unless nothing is taken.
    pub(super) fn wait(&self) {
        let mut taken = self.taken.lock();
        if *taken > 0 {
            self.given_back.wait(&mut taken);
        }
    }

    pub(super) fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            *self.taken.lock() -= bytes;
            self.given_back.notify_all();
        }
    }

    /// Ends a permit for `permitted` bytes that made `more` bytes dirty, perhaps less than before.
    pub(super) fn settle(&self, permitted: u64, more: i64) {
        let mut taken = self.taken.lock();
        *taken = taken.saturating_sub(permitted).saturating_add_signed(more);
        self.given_back.notify_all();
    }

    /// Whether so much is taken that some of it should be on its way already.
    pub(super) fn is_half_taken(&self) -> bool {
        self.taken() > self.bytes / 2
    }

    pub(super) fn taken(&self) -> u64 {
        *self.taken.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_had_when_it_fits_or_nobody_else_has_one() {
        let budget = Budget::new(100);
        assert!(budget.try_take(1000));
        assert!(!budget.try_take(1));
        budget.give_back(1000);
        assert!(budget.try_take(60) && !budget.try_take(41) && budget.try_take(40));
        assert!(budget.is_half_taken());
        budget.give_back(50);
        assert!(!budget.is_half_taken());
        assert_eq!(budget.taken(), 50);
    }
}

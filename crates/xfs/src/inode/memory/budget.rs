//! How many bytes of files may be dirty.

use parking_lot::{Condvar, Mutex};

/// A budget of bytes. Permits are counts: their holder gives back a number of bytes.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: u64,
    state: Mutex<State>,
    given_back: Condvar,
}

#[derive(Debug, Default)]
struct State {
    taken: u64,
    /// How often bytes were given back.
    returns: u64,
}

impl State {
    fn give_back(&mut self, bytes: u64) {
        self.taken = self.taken.saturating_sub(bytes);
        self.returns += 1;
    }
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { bytes, state: Mutex::default(), given_back: Condvar::new() }
    }

    /// Takes a permit for `bytes` bytes. One that is larger than the budget is granted when no
    /// other is out.
    ///
    /// # Errors
    /// There is none; the number says how often bytes were given back until then, for
    /// [`wait`](Self::wait).
    pub(crate) fn try_take(&self, bytes: u64) -> Result<(), u64> {
        let mut state = self.state.lock();
        if state.taken > 0 && state.taken.saturating_add(bytes) > self.bytes {
            return Err(state.returns);
        }
        state.taken += bytes;
        Ok(())
    }

    /// Sleeps until bytes are given back after the return with the number `returns`.
    pub(crate) fn wait(&self, returns: u64) {
        let mut state = self.state.lock();
        self.given_back.wait_while(&mut state, |state| state.taken > 0 && state.returns == returns);
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            self.state.lock().give_back(bytes);
            self.given_back.notify_all();
        }
    }

    /// Ends a permit for `permitted` bytes that made `more` bytes dirty, perhaps less than before.
    pub(crate) fn end_permit(&self, permitted: u64, more: i64) {
        let mut state = self.state.lock();
        state.taken = state.taken.saturating_add_signed(more);
        state.give_back(permitted);
        self.given_back.notify_all();
    }

    /// Whether so much is taken that some of it should be on its way already.
    pub(crate) fn is_half_taken(&self) -> bool {
        self.taken() > self.bytes / 2
    }

    pub(crate) fn taken(&self) -> u64 {
        self.state.lock().taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_granted_when_it_fits_or_no_other_is_out() {
        let budget = Budget::new(100);
        assert!(budget.try_take(1000).is_ok());
        let returns = budget.try_take(1).unwrap_err();
        budget.give_back(1000);
        // Does not sleep: bytes came back since.
        budget.wait(returns);
        assert!(budget.try_take(60).is_ok());
        assert!(budget.try_take(41).is_err() && budget.try_take(40).is_ok());
        assert!(budget.is_half_taken());
        budget.give_back(50);
        assert!(!budget.is_half_taken());
        budget.end_permit(20, -10);
        assert_eq!(budget.taken(), 20);
    }
}

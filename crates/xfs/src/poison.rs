//! Why a volume must not be changed any more (docs/decisions/transactions.md#a-transaction-that-fails-half-way).

use crate::error::Error;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, by the first failure behind which nothing can be relied upon.
#[derive(Debug, Default)]
pub(crate) struct Poison {
    is_set: AtomicBool,
    reason: Mutex<Option<Arc<str>>>,
}

impl Poison {
    /// Refuses every further change. The first reason stays.
    pub(crate) fn set(&self, reason: &str) {
        self.reason.lock().get_or_insert_with(|| reason.into());
        self.is_set.store(true, Ordering::Release);
    }

    /// Whether everything is refused.
    pub(crate) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Why everything is refused, if it is.
    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        if self.is_set() { self.reason.lock().clone() } else { None }
    }

    /// Fails with the reason, if there is one.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.reason() {
            Some(reason) => Err(Error::Poisoned(reason.to_string())),
            None => Ok(()),
        }
    }
}

//! Findings on their way to the caller.
//!
//! Threads add them in any order; each phase ends with a delivery in the order of places, so that
//! a report does not depend on timing. Their number is bounded: a volume of rubbish has one per
//! block.

use super::{Finding, Severity};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Collects findings from all threads.
#[derive(Debug)]
pub(super) struct Findings {
    waiting: Mutex<Vec<Finding>>,
    limit: u64,
    errors: AtomicU64,
    warnings: AtomicU64,
}

impl Findings {
    /// A collection that keeps the first `limit` findings and counts the rest.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            waiting: Mutex::default(),
            limit,
            errors: AtomicU64::new(0),
            warnings: AtomicU64::new(0),
        }
    }

    pub(super) fn add(&self, finding: Finding) {
        let (counter, other) = match finding.severity {
            Severity::Error => (&self.errors, &self.warnings),
            Severity::Warning => (&self.warnings, &self.errors),
        };
        let number = counter.fetch_add(1, Ordering::Relaxed) + other.load(Ordering::Relaxed);
        if number < self.limit {
            self.waiting.lock().push(finding);
        }
    }

    /// Errors and warnings so far.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.errors.load(Ordering::Relaxed), self.warnings.load(Ordering::Relaxed))
    }

    /// Hands over the findings added since the last delivery.
    pub(super) fn deliver(&self, to: &mut dyn FnMut(Finding)) {
        let mut waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.sort_by(|a, b| {
            (a.location, a.structure, a.field, &a.what).cmp(&(
                b.location,
                b.structure,
                b.field,
                &b.what,
            ))
        });
        waiting.into_iter().for_each(to);
    }
}

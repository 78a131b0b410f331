//! The two policies without memory.

use crate::policy::{Policy, Wakes};

/// A waiter for each tag.
#[derive(Debug)]
pub(super) struct WakeOne;

impl Policy for WakeOne {
    fn freed(&self, wakes: &Wakes<'_>, freed: u32) {
        wakes.anywhere(freed);
    }
}

/// All waiters for any tag.
#[derive(Debug)]
pub(super) struct WakeAll;

impl Policy for WakeAll {
    fn freed(&self, wakes: &Wakes<'_>, _freed: u32) {
        wakes.anywhere(u32::MAX);
    }
}

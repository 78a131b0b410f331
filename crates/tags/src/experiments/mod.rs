//! For experiments: wake policies to compare [`WakePolicy::Counters`] with.
//!
//! Sets of other programs have that one, and need nothing of this.

mod cyclic;
mod one_or_all;
mod wake_policy;

pub use wake_policy::WakePolicy;

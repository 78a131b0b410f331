//! Estimates from repeated runs, and rules that they are held against.

mod estimate;
mod rule;
mod spread;

pub(crate) use estimate::Estimate;
pub(crate) use rule::{Rule, Verdict};
pub use spread::Spread;

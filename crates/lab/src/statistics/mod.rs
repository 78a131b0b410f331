//! Estimates from repeated runs, and rules that they are held against.

mod estimate;
mod rule;

pub(crate) use estimate::Estimate;
pub(crate) use rule::{Rule, Verdict};

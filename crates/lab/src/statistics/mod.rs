//! Estimates from repeated runs, and rules that they are held against.

mod case_rates;
mod estimate;
mod rule;
mod spread;

pub(crate) use case_rates::CaseRates;
pub(crate) use estimate::Estimate;
pub(crate) use rule::{Rule, Verdict};
pub use spread::Spread;

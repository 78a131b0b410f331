//! The chapters: what depth does to wake policies, and what many waiters do.

mod depth;
mod waiters;

pub(crate) use depth::{own as depth, shared};
pub(crate) use waiters::{fairness, herd, variability};

//! Removed files found again: the kernel's XFS makes, removes and overwrites, and what was there is
//! known.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod history;
mod reading;
mod removed;
mod salvage;
mod tree;

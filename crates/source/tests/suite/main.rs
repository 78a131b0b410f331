//! What sources deliver, checked from outside: whole trees, archives by the system's tar and by hand.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test like tests do")]

mod archive;
mod collect;
mod compression;
mod descriptions;
mod directory;
mod faults;
mod foreign;
mod formats;
mod labels;
mod names;
mod random;
mod rules;
mod sorted;
mod surveys;

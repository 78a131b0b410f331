//! Volumes as a whole: made, grown, shrunk, given another label or UUID; what they refuse.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod cuts;
mod errors;
mod grow;
mod identity;
mod mkfs_golden;
mod quota;
mod shrink;
mod shrink_cuts;
mod shrink_inodes;
mod shrink_moves;
mod shrink_random;
mod shrink_staging;

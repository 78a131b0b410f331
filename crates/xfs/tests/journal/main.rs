//! The journal of live volumes, judged by the kernel that replays it, by `xfs_repair -n` and by
//! `xfs_logprint`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod audit;
mod close;
mod constraints;
mod crash;
mod crash_tests;
mod faults;
mod full;
mod random_faults;
mod refused;
mod replay;
mod threads;
mod tree;
mod work;

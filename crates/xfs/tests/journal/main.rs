//! The journal of live volumes, judged by the kernel that replays it, by `xfs_repair -n` and by
//! `xfs_logprint`; and our replay of what the kernel left.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod audit;
mod close;
mod constraints;
mod crash;
mod faults;
mod full;
mod random_faults;
mod recovery;
mod refused;
mod replay;
mod threads;

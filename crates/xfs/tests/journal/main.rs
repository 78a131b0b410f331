//! The journal of live volumes, judged by the kernel that replays it, by `xfs_repair -n` and by
//! `xfs_logprint`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod crash;
mod crash_tests;
mod replay;
mod tree;
mod work;

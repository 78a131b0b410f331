//! Data of files in memory, and tickets for its durability; judged by the kernel and
//! `xfs_repair -n`.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod cuts;
mod failures;
mod files;
mod remapped;
mod tickets;
mod work;

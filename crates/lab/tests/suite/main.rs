//! The experiments in their smoke sizes.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod affinity;
mod alloc;
mod fsync;
mod iops;
mod meta;
mod mount;
mod tags;
mod unplug;

//! Volumes mounted by the command, and used through the kernel.
//!
//! Every test unmounts, and then the newest `xfs_repair -n` and our check must find nothing. Without
//! /dev/fuse they fail and say so: see the message of [`mounted::Volume::mount`].

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod access;
mod attributes;
mod confined;
mod crash;
mod data;
mod devices;
mod endings;
mod forms;
mod listing;
mod matrix;
mod mounted;
mod names;
mod network;
mod others;
mod programs;
mod protected;
mod remount;
mod rights;
mod status;
mod suites;

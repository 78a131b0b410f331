//! Files in use as a server uses them: numbers used again, files removed while dirty or open,
//! errors under locks, callbacks that call back, full volumes.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod common;

mod ahead;
mod ahead_of_writers;
mod awaited;
mod callbacks;
mod errors;
mod lifecycle;
mod locks;
mod reads;
mod space;
mod stand;
mod tickets;

//! Files in use: their data, its durability, names, servers that hold them open.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod data;
mod fsync;
mod open_files;
mod operations;
mod removed;

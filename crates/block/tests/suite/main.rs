//! The block layer from outside: devices, their queues, drivers that fail, stacks, one writer.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod block_device;
mod conformance;
mod driver;
mod dropped;
mod exclusive;
mod file_device;
mod file_engines;
mod hanging;
mod history;
mod plug;
mod queue;
mod remote;
mod silent;
mod splice;
mod stacks;
mod time_limit;

//! The allocator: against a model, against the kernel, on damaged trees.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod damage;
mod free_space_damage;
mod histories;
mod inode_damage;
mod kernel;
mod targets;

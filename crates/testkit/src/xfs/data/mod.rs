//! Data of files: random operations on them, in memory, here, by the kernel.

pub mod crash;
pub mod history;
pub mod mirror;
pub mod operation;

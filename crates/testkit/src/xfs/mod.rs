//! For tests of the file system itself.

pub mod allocations;
pub mod check;
pub mod data;
pub mod fields;
pub mod fsync;
pub mod journal;
pub mod judged;
pub mod mutation;
pub mod operations;
pub mod recovery;
pub mod serve;
pub mod serve_crash;
pub mod volume;

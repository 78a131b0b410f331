//! XFS file systems in user space.
#![forbid(unsafe_code)]

pub mod btree;
pub mod bytes;
pub mod cache;
pub mod format;
pub mod units;

//! XFS file systems in user space.
#![forbid(unsafe_code)]

pub mod btree;
pub mod bytes;
pub mod cache;
pub mod da;
pub mod dir;
pub mod error;
pub mod format;
pub mod geometry;
pub mod units;

pub use error::Error;
pub use geometry::Geometry;
